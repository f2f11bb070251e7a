"""Domain events: changes of a workspace's resources, which are sent to webhooks (contract H6, H7, H8).

A resource calls `workspaced.events.outbox.emit` in the transaction of the change::

    emit(tx, call, sink.workspace_id, DomainEvent(type="data_sink.updated", id=sink.id, record=record, previous={"label": "old"}))

``record`` is the response record after the change (before the change, if it is a deletion). ``previous`` has the old values of
the members that changed. A write that changes nothing emits nothing. If events are expensive to build, call
`workspaced.events.outbox.is_subscribed` first: it is one query of a table that is nearly always empty.
"""
