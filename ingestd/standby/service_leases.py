"""Leases in the workspace service (contract M14), which itself refuses late requests of a former holder."""

from __future__ import annotations

from ingestd.client.leases import LeaseMethods, WriterLease
from ingestd.client.request import Request
from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.standby.lease_store import LeaseResponse, LeaseUnavailable
from ingestd.standby.mistake import standby_mistake

_REFUSED = {"lease_not_found", "lease_held", "lease_lost"}
_REFUSED_FOR_GOOD = {"lease_of_another", "too_many_leases"}
_UNKNOWN_PATH = {404, 405, 501}


class ServiceLeases:
    """See `LeaseStore`."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    @property
    def shown(self) -> str:
        """The service, for messages."""
        return f"The service at {self._client.address}"

    async def are_offered(self, writer: str) -> bool:
        """Return whether the service has leases.

        The response of a proxy does not prove that the service has no leases.

        Raises:
            LeaseUnavailable: it is unknown now whether the service has leases.
        """
        return await self._find(writer) is not None

    async def find(self, writer: str) -> LeaseResponse:
        """See `LeaseStore`."""
        found = await self._find(writer)
        if found is None:
            raise standby_mistake(
                "The service offers no leases, so it does not know which daemon is active. Update it, use --standby with a "
                "separate PostgreSQL database, which then has the lease, or run without --standby."
            )
        return found

    async def _find(self, writer: str) -> LeaseResponse | None:
        """Return the lease; None if the service has no leases."""
        found = await self._client.send(LeaseMethods.find_lease.build(writer))
        if found.status not in _UNKNOWN_PATH or found.facts.code in _REFUSED:
            return _responded(found)
        listed = await self._client.list_workspaces()
        if listed.value is None:
            raise LeaseUnavailable(listed.outcome.sentence)
        return None

    async def take(self, writer: str, *, holder: str, seconds: int, above: int) -> LeaseResponse:  # noqa: ARG002 - the service knows what was sent
        """See `LeaseStore`."""
        return await self._send(LeaseMethods.take_lease.build(writer, holder=holder, seconds=seconds))

    async def renew(self, writer: str, *, holder: str, seconds: int, epoch: int) -> LeaseResponse:
        """See `LeaseStore`."""
        return await self._send(LeaseMethods.take_lease.build(writer, holder=holder, seconds=seconds, epoch=epoch))

    async def release(self, writer: str, *, holder: str, epoch: int, reserved_seconds: int) -> LeaseResponse:
        """See `LeaseStore`."""
        request = LeaseMethods.release_lease.build(
            writer, holder=holder, epoch=epoch, reserved_seconds=reserved_seconds
        )
        return await self._send(request)

    async def ask(self, writer: str, *, holder: str) -> LeaseResponse:
        """See `LeaseStore`."""
        return await self._send(LeaseMethods.ask_for_lease.build(writer, holder=holder))

    async def _send(self, request: Request[WriterLease]) -> LeaseResponse:
        return _responded(await self._client.send(request))


def _responded(response: ServiceResponse[WriterLease]) -> LeaseResponse:
    if response.value is not None:
        return LeaseResponse(lease=response.value)
    # The sentence of the outcome is about sinks and entries, so only the words of the service are used.
    refusal = response.facts.words or response.outcome.sentence
    if response.facts.code in _REFUSED_FOR_GOOD:
        raise standby_mistake(f"The service refuses the lease. {refusal}")
    if response.facts.code in _REFUSED:
        return LeaseResponse(refusal=refusal)
    raise LeaseUnavailable(response.outcome.sentence)
