"""What happened in a workspace, told to those who asked for it (contract H6, H7, H8).

A slice that has changed something calls `workspaced.events.outbox.emit` in the transaction of the change::

    emit(tx, call, sink.workspace_id, Event(type="data_sink.updated", id=sink.id, record=record, previous={"label": "old"}))

``record`` is it as the document shows it after the change (for a deletion: before), ``previous`` holds the former
values of the members that changed, and only those. What did not change anything emits nothing. Where building the
events costs something, ask `workspaced.events.outbox.listening` first: it is one look-up in a table that is nearly
always empty.
"""
