"""A module in the seed's form, with nothing but Python's own library. Prints its port."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = {
    "name": "research",
    "description": "Searches.",
    "tools": [
        {
            "name": "research.web_search",
            "description": "Search the web and return results",
            "required_permission": "guest",
            "parameters": [
                {"name": "query", "type": "string", "description": "Search query", "required": True},
                {"name": "max_results", "type": "integer", "description": "Max results", "required": False},
            ],
        },
        {"name": "research.fail", "description": "Fails.", "required_permission": "user", "parameters": []},
    ],
}


def execute(call):
    name, arguments = call["tool_name"], call["arguments"]
    if name == "research.web_search":
        found = [f"{arguments['query']} {n}" for n in range(arguments.get("max_results", 1))]
        return {"tool_name": name, "success": True, "result": {"found": found, "for": call.get("user_id")}, "error": None}
    if name == "research.fail":
        raise RuntimeError("no index")
    return {"tool_name": name, "success": False, "result": None, "error": f"Unknown tool: {name}"}


class Module(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(*((200, MANIFEST) if self.path == "/manifest" else (404, {"detail": "Not Found"})))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            self.answer(200, execute(json.loads(body)))
        except RuntimeError as error:
            self.answer(500, {"detail": str(error)})

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Module)
print(server.server_port, flush=True)
server.serve_forever()
