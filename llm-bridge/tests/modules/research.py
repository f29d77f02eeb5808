"""A module as they are written with FastAPI: two routes and a model for each body. Started with uvicorn by run.py."""

import asyncio
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel


class ToolParameter(BaseModel):
    name: str
    type: str
    description: str
    required: bool = True
    enum: list[str] | None = None


class ToolDefinition(BaseModel):
    name: str
    description: str
    parameters: list[ToolParameter] = []
    required_permission: str = "guest"


class ModuleManifest(BaseModel):
    name: str
    description: str
    version: str = "1.0.0"
    tools: list[ToolDefinition]


class ToolCall(BaseModel):
    tool_name: str
    arguments: dict[str, Any] = {}
    user_id: str | None = None


class ToolResult(BaseModel):
    tool_name: str
    success: bool
    result: Any = None
    error: str | None = None


def parameter(name, kind, **more):
    return ToolParameter(name=name, type=kind, description=f"The {name}.", **more)


MANIFEST = ModuleManifest(
    name="research",
    description="Searches the web.",
    tools=[
        ToolDefinition(
            name="research.web_search",
            description="Search the web and return results",
            parameters=[
                parameter("query", "string"),
                parameter("max_results", "integer", required=False),
                parameter("order", "string", required=False, enum=["date", "rank"]),
            ],
        ),
        ToolDefinition(name="research.fail", description="Fails.", required_permission="user"),
        ToolDefinition(name="research.crash", description="Crashes.", required_permission="user"),
        ToolDefinition(name="research.sleep", description="Takes its time.", required_permission="user"),
        ToolDefinition(name="research.wipe", description="For admins.", required_permission="admin"),
        ToolDefinition(name="research.odd", description="For nobody knows whom.", required_permission="root"),
    ],
)

app = FastAPI()


@app.get("/manifest")
async def manifest() -> ModuleManifest:
    return MANIFEST


@app.post("/execute")
async def execute(call: ToolCall) -> ToolResult:
    match call.tool_name:
        case "research.web_search":
            found = [f"{call.arguments['query']} {n}" for n in range(call.arguments.get("max_results", 1))]
            result = {"found": found, "user": call.user_id, "arguments": call.arguments}
            return ToolResult(tool_name=call.tool_name, success=True, result=result)
        case "research.fail":
            return ToolResult(tool_name=call.tool_name, success=False, error="The index is being built.")
        case "research.crash":
            raise HTTPException(500, "no index")
        case "research.sleep":
            await asyncio.sleep(30)
            return ToolResult(tool_name=call.tool_name, success=True, result="slept")
        case "research.wipe":
            return ToolResult(tool_name=call.tool_name, success=True, result="wiped")
        case unknown:
            return ToolResult(tool_name=unknown, success=False, error=f"Unknown tool: {unknown}")
