"""How bodies are sent that are neither text nor JSON."""

import schemathesis


@schemathesis.serializer("application/gzip")
def as_it_is(_, body):
    return body if isinstance(body, bytes) else str(body).encode()
