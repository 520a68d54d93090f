"""The README's session: a document with a view, then one that two streams feed."""

import axlog

# A document, a view over it, an update: the view emits the changes.
document = axlog.parse("<orders><order><oid>17</oid></order></orders>")
unpaid = document.watch("match /orders/order[not(paid)]/oid/$x return $x", name="unpaid")
print(unpaid.rows())
print(document.update("insert node <order><oid>18</oid></order> into /orders"))
print(document.update("insert node <paid/> into //order[oid = 17]"))
print(unpaid.rows())

# Two streams bring orders and shipments, a view joins them and compares their times.
monitor = axlog.parse(
    """<management xmlns:ax="urn:axlog">
         <webstore><orders><ax:call stream="orders"/></orders></webstore>
         <shipping><orders><ax:call stream="shipments"/></orders></shipping>
       </management>""",
    views={
        "late": """match /management[webstore/orders/order[client/"INRIA"]/oid/$x#t1]
                                    [shipping/orders/order/oid/$x#t2]
                   where t2 - t1 >= 50000 return $x"""
    },
    facts=["key shipping/orders/order by oid trusted"],  # an order is shipped once
)
monitor.view("late").subscribe(lambda change: print("late:", change.op, change.row["x"]))
monitor.feed("orders", "<order><oid>17</oid><client>INRIA</client></order>", at=0)
monitor.feed("orders", "<order><oid>18</oid><client>INRIA</client></order>", at=20_000)
monitor.feed("shipments", "<order><oid>18</oid></order>", at=30_000)
late = monitor.view("late")
print("17 is", late.status({"x": "17"}).value, "and 18 is", late.status({"x": "18"}).value)
monitor.feed("shipments", "<order><oid>17</oid></order>", at=60_000)

# Why is order 17 late? Every node that the query matched, and when it came.
(derivation,) = late.why({"x": "17"})
for match in derivation.matched:
    if match.pattern.startswith("$x"):
        print(match.pattern, "came with", match.origin, "at", match.time, "seconds")
