"""Webhook notifications, for any web framework or a notebook.

In a web application:

    if not webhooks.verify(request.headers, "X-Webhook-Secret", secret):
        abort(401)
    notification = webhooks.parse(request.body)

In a notebook:

    with webhooks.listen(client=client) as receiver:
        client.submit("talk.wav", **receiver.options())
        transcript = receiver.get(timeout=60).transcript()

A notification may arrive more than once and in any order; a receiver returns each one once.
"""

from voxframe.client.notification import Headers, Notification, parse, verify
from voxframe.client.webhook_receiver import WebhookReceiver, listen

__all__ = ["Headers", "Notification", "WebhookReceiver", "listen", "parse", "verify"]
