"""The words of generated documents: names, places, terms of sale and running prose.

All words are invented or general knowledge; none is copied from the word lists of another
generator. A few values are fixed because queries of known workloads use them: the word `gold`,
the country `United States`, the education `Graduate School`.
"""

from __future__ import annotations


def _terms(text: str) -> tuple[str, ...]:
    """The terms of a text, separated by commas; line breaks are ignored."""
    return tuple(" ".join(text.split()).split(", "))


FIRST_NAMES = tuple(
    """
    Aaron Abena Adele Adriana Agnes Ahmed Aiko Akira Alba Aldo Alexandra Alice Amadou Amina
    Anders Andrea Angela Anita Annika Anton Ariane Arjun Astrid Ayse Barbara Beatriz Benedikt
    Bjorn Bogdan Brigitte Bruno Camille Carlos Carolina Cecile Chiara Christian Claudia Cosima
    Cyrus Dagmar Daniela Dariusz Deborah Denise Dimitri Dolores Dominik Dorothea Eduardo Eleanor
    Elias Elif Emanuel Emilia Enrique Erika Esteban Esther Fabian Fatima Federico Felicity
    Fernanda Florian Francesca Frederik Gabriela Genevieve Georgios Giovanni Greta Guillermo
    Gunnar Hannah Hassan Hedwig Helena Henrietta Hiroshi Ibrahim Ignacio Ingeborg Isabella
    Jacinta Jadwiga Javier Jelena Joachim Johanna Jonathan Josefina Julian Karolina Katarina
    Kenji Khalid Klara Konrad Kwame Lakshmi Laurent Leonardo Liliana Lorenzo Lucinda Ludmila
    Magnus Malika Marcello Margarita Mariana Matthias Mehmet Mercedes Michaela Miroslav Monique
    Mustafa Nadezhda Natalia Nicholas Nikolai Octavia Olivier Olympia Oswald Pascale Patricia
    Paulina Philippa Quentin Rafaela Ramesh Rebecca Reinhard Ricardo Rosalind Ruslan Sabrina
    Salvador Samantha Sebastian Shirin Sigrid Solomon Stefania Sunniva Sylvester Tadeusz Tamara
    Theodora Tomoko Umberto Valentina Veronika Viktor Wilhelmina Winston Xavier Yasmin Yolanda
    Yusuf Zacharias Zuzana
    """.split()
)

LAST_NAMES = tuple(
    """
    Abbott Achterberg Adeyemi Albrecht Almeida Anastasiou Andersson Aranda Ashworth Baldwin
    Barreto Bauer Beaumont Berglund Bianchi Blackwood Boateng Bogdanov Borges Brankovic
    Bridgewater Brunner Cabrera Cardoso Castellano Chandra Chevalier Christou Clarkson Colombo
    Cordova Czerny Dalgaard Demir Desrosiers Diallo Dimitrov Dombrowski Donnelly Dubois Eastwood
    Echeverria Eklund Engelhardt Eriksen Escobar Fairbanks Falkner Farkas Fernandes Ferrari
    Fitzgerald Fontaine Forsberg Fukuda Galloway Gauthier Gerhardt Giannopoulos Gonzaga
    Grabowski Greenfield Grimaldi Guerrero Gustavsson Haddad Halloran Hammond Hashimoto Havel
    Heinrich Hendricks Hernandez Hoffmann Holmberg Horvath Hutchinson Iglesias Ivanova Jablonski
    Jankowski Jimenez Johansen Kaminski Kapoor Karlsson Kavanagh Keller Kimura Kirchner
    Kowalczyk Kruger Kuznetsov Lafontaine Lancaster Larsen Laurent Leclerc Lehmann Lindqvist
    Lombardi Lundgren Macpherson Maldonado Marchetti Markovic Martinelli Matsumoto Mazur
    Medeiros Mendoza Meunier Mikkelsen Moreau Morimoto Nakamura Navarro Nielsen Novak Nwosu
    Oconnell Okafor Olivares Osborne Ostrowski Pacheco Papadakis Pellegrini Petrov Pfeiffer
    Popescu Quintero Radovic Rahman Ramirez Rasmussen Reinhardt Richter Rodrigues Rosenberg
    Rossini Sabatini Salazar Sandoval Santoro Schaefer Schneider Sepulveda Shimizu Silvestri
    Soderberg Sorensen Stankovic Steiner Suzuki Szabo Takahashi Tavares Thibault Thorvaldsen
    Toivonen Torres Tremblay Ulrich Underhill Valdez Vanderberg Vasquez Villanueva Vogel Wagner
    Wallace Watanabe Weatherby Weissman Whitaker Wieczorek Winkler Yamamoto Yildirim Zamora
    Zeller Zielinski Zimmermann
    """.split()
)

_HOST_NAMES = (
    "a1 arc ask b2 bay bee c3 cap den dot e4 elm era fig fox gem go hub ink ivy jet key lab log "
    "low map mid net now oak old one orb pod pub ray red sea six sky sun tea ten tip uni up via "
    "web win wit yes zen"
)
# A reserved top-level domain: these hosts can never exist.
HOSTS = tuple(f"{name}.test" for name in _HOST_NAMES.split())

CITIES = tuple(
    """
    Aberdeen Adelaide Albany Algiers Amman Antwerp Athens Atlanta Austin Baltimore Bangkok
    Barcelona Basel Beirut Belfast Bergen Berlin Bilbao Bogota Bologna Bordeaux Boston Bremen
    Brisbane Bristol Brussels Budapest Buffalo Cairo Calgary Caracas Chicago Cologne Copenhagen
    Cordoba Cork Dakar Dallas Denver Detroit Dresden Dublin Durban Edinburgh Florence Geneva
    Genoa Ghent Glasgow Granada Graz Hamburg Hanoi Havana Helsinki Houston Istanbul Jakarta
    Karachi Kyoto Lagos Leeds Leipzig Lille Lima Lisbon Ljubljana London Lyon Madrid Malaga
    Manila Marseille Melbourne Memphis Miami Milan Montreal Munich Nairobi Nantes Naples Nice
    Osaka Oslo Ottawa Palermo Paris Perth Phoenix Porto Prague Quebec Quito Riga Rome Rotterdam
    Salzburg Santiago Seattle Seoul Seville Sofia Stockholm Sydney Tallinn Tampa Toronto
    Toulouse Trieste Tunis Turin Utrecht Valencia Vancouver Venice Vienna Vilnius Warsaw Zagreb
    Zurich
    """.split()
)

HOME_COUNTRY = "United States"
COUNTRIES = _terms(
    """
    Albania, Algeria, Andorra, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan,
    Bahamas, Bangladesh, Barbados, Belgium, Belize, Benin, Bolivia, Botswana, Brazil, Bulgaria,
    Burkina Faso, Cambodia, Cameroon, Canada, Chad, Chile, China, Colombia, Costa Rica, Croatia,
    Cuba, Cyprus, Denmark, Dominican Republic, Ecuador, Egypt, El Salvador, Equatorial Guinea,
    Estonia, Ethiopia, Fiji, Finland, France, Gabon, Georgia, Germany, Ghana, Greece, Guatemala,
    Guyana, Haiti, Honduras, Hungary, Iceland, India, Indonesia, Ireland, Israel, Italy,
    Jamaica, Japan, Jordan, Kenya, Latvia, Lebanon, Lesotho, Liberia, Lithuania, Luxembourg,
    Madagascar, Malawi, Malaysia, Mali, Malta, Mauritius, Mexico, Moldova, Monaco, Mongolia,
    Morocco, Mozambique, Namibia, Nepal, Netherlands, New Zealand, Nicaragua, Niger, Nigeria,
    Norway, Oman, Pakistan, Panama, Papua New Guinea, Paraguay, Peru, Philippines, Poland,
    Portugal, Qatar, Romania, Rwanda, Samoa, Saudi Arabia, Senegal, Serbia, Sierra Leone,
    Singapore, Slovakia, Slovenia, South Africa, Spain, Sri Lanka, Sweden, Switzerland,
    Tanzania, Thailand, Togo, Trinidad and Tobago, Tunisia, Turkey, Uganda, Ukraine,
    United Kingdom, Uruguay, Vanuatu, Viet Nam, Zambia, Zimbabwe
    """
)

PROVINCES = _terms(
    """
    Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida,
    Georgia, Hawaii, Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine,
    Maryland, Massachusetts, Michigan, Minnesota, Mississippi, Missouri, Montana, Nebraska,
    Nevada, New Hampshire, New Jersey, New Mexico, New York, North Carolina, North Dakota, Ohio,
    Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina, South Dakota, Tennessee,
    Texas, Utah, Vermont, Virginia, Washington, West Virginia, Wisconsin, Wyoming
    """
)

PAYMENTS = ("Money order", "Creditcard", "Personal Check", "Cash")
SHIPPINGS = (
    "Will ship only within country",
    "Will ship internationally",
    "Buyer pays fixed shipping charges",
    "See description for charges",
)
EDUCATIONS = ("High School", "College", "Graduate School", "Other")

COMMON_WORDS = tuple(
    """
    about above across advice after again against almost along already also although always
    among anchor ancient answer apple apron arrow aside autumn away balance banner barley basket
    battle bear beauty because become before begin behind believe below beneath beside better
    between beyond bitter blanket blossom border borrow bottle branch brave bread breeze bridge
    bright bring brother brown bucket build burden butter candle captain careful carpet castle
    cattle caught cellar certain chamber change chapel charge cheese cherry chimney choose
    circle citizen clever cloud coast cold colour comfort common copper corner cotton country
    courage course cousin cradle crown curious current custom daily danger daughter deep delight
    desert differ dinner distant doctor double dozen dragon dream drink during eager early earth
    east echo either elbow empty enough entire equal evening every exact faint fairly faith
    familiar famous farmer father feather fellow fence fever field figure finger finish first
    flame flight flower follow foreign forest forget fortune forward fountain freedom fresh
    friend front frozen garden gather gentle giant gift glass gold good grain grateful gravel
    great green ground grow guard guest half hammer happen harbour hardly harvest heart heavy
    helmet hidden history hollow honest honey horizon horse hour house humble hundred hunger
    hurry idle increase indeed inside island jacket journey judge justice kettle kind kingdom
    kitchen knife ladder language lantern large laugh leather lemon lesson letter level light
    likely linen listen little lively local lonely loud lucky lumber machine manner marble
    market marriage master matter meadow measure memory merchant middle mighty mirror modest
    moment monday money morning mother mountain moustache music narrow nation nature near needle
    neighbour never night noble north notice number oblige ocean offer often olive only open
    orange orchard order ordinary other outside owner oyster paint palace paper parcel parlour
    partner patient pepper perhaps person picture pigeon pillow pilot plain planet plenty pocket
    poet polish powder prayer precious present pretty price prince promise proper proud public
    purple purpose quarrel quarter queen question quick quiet rabbit rather ready reason record
    regard remain remember reply rescue rest return ribbon river rough round royal saddle safe
    sailor salt savage scarlet scholar season second secret seldom sentence servant settle seven
    several shadow shallow shelter shepherd shore shoulder sickle signal silence silver simple
    since sister slender smooth soldier solemn sorrow south spirit splendid spring square stable
    station steady stone storm stranger stream street strong sudden sugar summer supper surface
    swallow sweet table tailor tender terror thank theatre thirsty thousand thread thunder
    timber today together tomorrow travel treasure tremble trouble trumpet trust turn twenty
    twilight uncle under unless until upper useful usual valley velvet village violet visit
    voice voyage wagon wander warm water weather welcome western wheat whisper whole willow
    window winter wisdom within without wonder wooden world worthy yellow yesterday young
    """.split()
)

_ONSETS = tuple("b br c d dr f g gr h l m n p r s sh st t v w".split())
_VOWELS = tuple("a e i o u a e i o u ea".split())
_CODAS = ("", "", "", "", "", "n", "r", "l", "s", "t")


def word(rank: int) -> str:
    """The word of this frequency rank: common words first, then words of two or three syllables.

    >>> word(0), word(5000) == word(5000)
    ('about', True)
    """
    if rank < len(COMMON_WORDS):
        return COMMON_WORDS[rank]
    # Knuth's multiplicative hash spreads neighbouring ranks over the syllables.
    rest = rank * 2654435761 % 4294967296
    syllables = []
    for _ in range(2 + rank % 2):
        rest, onset = divmod(rest, len(_ONSETS))
        rest, vowel = divmod(rest, len(_VOWELS))
        rest, coda = divmod(rest, len(_CODAS))
        syllables.append(_ONSETS[onset] + _VOWELS[vowel] + _CODAS[coda])
    return "".join(syllables)
