"""The methods that both clients have: one line each, over the functions of `ingestd.client.requests`."""

from __future__ import annotations

from ingestd.client.methods import Iteration, Method
from ingestd.client.requests import (
    api_keys,
    audit,
    blocks,
    deliveries,
    entries,
    files,
    health,
    mass,
    sinks,
    webhooks,
    workspaces,
)


class Surface:
    """What both clients can do beside reading and writing in pieces."""

    get_sink = Method(sinks.get_sink)
    get_sinks = Method(sinks.get_sinks)
    list_sinks = Method(sinks.list_sinks)
    iter_sinks = Iteration(sinks.iter_sinks)
    create_sink = Method(sinks.create_sink)
    update_sink = Method(sinks.update_sink)
    delete_sink = Method(sinks.delete_sink)

    get_entry = Method(entries.get_entry)
    create_entry = Method(entries.create_entry)
    update_entry = Method(entries.update_entry)
    delete_entry = Method(entries.delete_entry)
    mass_update_entry = Method(entries.mass_update_entry)
    mass_update_by_key = Method(entries.mass_update_by_key)
    mass_update = Method(mass.mass_update)
    mass_update_minimal = Method(mass.mass_update_minimal)
    mass_update_partial = Method(mass.mass_update_partial)

    list_blocks = Method(blocks.list_blocks)
    iter_blocks = Iteration(blocks.iter_blocks)
    get_block = Method(blocks.get_block)
    create_block = Method(blocks.create_block)
    update_block = Method(blocks.update_block)
    update_block_types = Method(blocks.update_block_types)
    delete_block = Method(blocks.delete_block)

    list_workspaces = Method(workspaces.list_workspaces)
    iter_workspaces = Iteration(workspaces.iter_workspaces)
    get_workspace = Method(workspaces.get_workspace)
    create_workspace = Method(workspaces.create_workspace)
    update_workspace = Method(workspaces.update_workspace)
    delete_workspace = Method(workspaces.delete_workspace)

    get_file = Method(files.get_file)
    list_files = Method(files.list_files)
    iter_files = Iteration(files.iter_files)
    update_file = Method(files.update_file)
    delete_file = Method(files.delete_file)
    get_metadata = Method(files.get_metadata)
    replace_metadata = Method(files.replace_metadata)
    retry_conversion = Method(files.retry_conversion)
    list_file_versions = Method(files.list_file_versions)
    iter_file_versions = Iteration(files.iter_file_versions)
    create_upload_link = Method(files.create_upload_link)
    complete_upload = Method(files.complete_upload)

    list_webhooks = Method(webhooks.list_webhooks)
    iter_webhooks = Iteration(webhooks.iter_webhooks)
    get_webhook = Method(webhooks.get_webhook)
    create_webhook = Method(webhooks.create_webhook)
    update_webhook = Method(webhooks.update_webhook)
    delete_webhook = Method(webhooks.delete_webhook)
    rotate_webhook_secret = Method(webhooks.rotate_webhook_secret)
    list_event_types = Method(webhooks.list_event_types)
    send_test_event = Method(deliveries.send_test_event)
    list_deliveries = Method(deliveries.list_deliveries)
    iter_deliveries = Iteration(deliveries.iter_deliveries)
    get_delivery = Method(deliveries.get_delivery)
    redeliver = Method(deliveries.redeliver)

    list_api_keys = Method(api_keys.list_api_keys)
    iter_api_keys = Iteration(api_keys.iter_api_keys)
    get_api_key = Method(api_keys.get_api_key)
    create_api_key = Method(api_keys.create_api_key)
    rotate_api_key = Method(api_keys.rotate_api_key)
    revoke_api_key = Method(api_keys.revoke_api_key)

    list_audit_log = Method(audit.list_audit_log)
    iter_audit_log = Iteration(audit.iter_audit_log)

    check_live = Method(health.check_live)
    check_ready = Method(health.check_ready)
