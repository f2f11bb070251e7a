"""The server of a bucket of S3, as settings of obstore."""

from __future__ import annotations

from typing import Any


def default_s3_endpoint(region: str) -> str:
    """Return the URL of AWS in a region."""
    return f"https://s3.{region}.amazonaws.com"


def s3_server_settings(region: str, endpoint: str = "", *, bucket_in_host: bool = False) -> dict[str, Any]:
    """Return the settings for the server at ``endpoint``; empty: AWS in the region.

    Without them, variables of the environment such as AWS_ENDPOINT_URL would lead to another server or bucket.
    ``bucket_in_host``: the host of ``endpoint`` begins with the name of the bucket.
    """
    return {
        "region": region,
        "virtual_hosted_style_request": bucket_in_host,
        "aws_endpoint_url_s3": endpoint or default_s3_endpoint(region),  # this name has priority over all similar ones
    }
