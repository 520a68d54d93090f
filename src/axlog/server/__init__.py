"""The HTTP server: channels as web services, webhooks, the live page. It does not use Spark.

Modules in reading order:

    server.py               a running server: listening, stopping
    connections.py          limits on connections and slow clients
    application.py          the web application and the checks that every request passes
    operations.py           the table of operations: routes and OpenAPI description
    responses.py            reading requests within limits; errors as problem details
    roles.py                principals, grants, limits, and the roles file
    access.py               authentication, authorization and rate limits
    sessions.py             sessions of browsers
    sign_in.py              signing in and out
    channel_routes.py       channels: create, publish, read, follow
    wakeups.py              waking many readers of a channel
    subscription_routes.py  subscriptions by name, webhook and WebSub
    ownership.py            the owners of subscriptions
    webhooks.py             delivery to webhooks
    webhook_secrets.py      addresses and secrets of webhooks
    view_routes.py          rows and changes of views, and views added by clients
    change_events.py        the changes of a view as server-sent events
    monitoring.py           /metrics and /health
    page.py                 the live page
    summaries.py            the page's model of documents in this process
    pipelines.py            the page's model of a pipeline in this process
    reports.py              the page's model of a pipeline that runs elsewhere
    row_lists.py            the lists of rows on the page
    history.py              recent changes, sizes and rates
"""
