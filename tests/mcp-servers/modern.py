"""A modern MCP server on the Python SDK: resources in memory, in pages of five, changed through `POST /control`.

`/control` is for the tests alone: {"set": {uri: text}, "remove": [uri]}. What it changes is announced through the SDK's own
subscription bus, so every message on the wire is the SDK's.
"""

import os
import socket
import sys

import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

PAGE = 5

contents = {f"memo://notes/{number}": f"note {number}" for number in range(12)}
bus = InMemorySubscriptionBus()


async def list_resources(_ctx, params):
    start = int(params.cursor) if params is not None and params.cursor else 0
    uris = sorted(contents)
    page = uris[start : start + PAGE]
    end = start + len(page)
    return types.ListResourcesResult(
        resources=[types.Resource(uri=uri, name=uri, mime_type="text/plain") for uri in page],
        next_cursor=str(end) if end < len(uris) else None,
    )


async def list_templates(_ctx, _params):
    return types.ListResourceTemplatesResult(resource_templates=[])


async def read_resource(_ctx, params):
    uri = str(params.uri)
    if uri not in contents:
        raise MCPError(types.INVALID_PARAMS, "unknown resource", {"uri": uri})
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=contents[uri])]
    )


async def control(request: Request) -> JSONResponse:
    order = await request.json()
    before = set(contents)
    for uri, text in order.get("set", {}).items():
        contents[uri] = text
        await bus.publish(ResourceUpdated(uri))
    for uri in order.get("remove", []):
        contents.pop(uri, None)
        await bus.publish(ResourceUpdated(uri))
    if set(contents) != before:
        await bus.publish(ResourcesListChanged())
    return JSONResponse({"resources": len(contents)})


server = Server(
    "fencepost-test-modern",
    version="1.0.0",
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscriptions_listen=ListenHandler(bus),
)
app = server.streamable_http_app(custom_starlette_routes=[Route("/control", control, methods=["POST"])])

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(os.environ.get("FENCEPOST_TEST_PORT", "0"))))
listener.listen(128)
print(f"fencepost-test: listening on {listener.getsockname()[1]}", file=sys.stderr, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
