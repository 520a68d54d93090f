"""HTTP: channels as web services, webhooks, events. Knows nothing of Spark."""
