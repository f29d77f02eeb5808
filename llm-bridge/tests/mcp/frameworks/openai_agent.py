"""openai-agents: an agent with the tools of an MCP server."""

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI

from asked import MODEL, QUESTION, SERVER, answer


async def ask():
    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel(model="scripted", openai_client=AsyncOpenAI(**MODEL))
    async with (MCPServerStdio if "command" in SERVER else MCPServerStreamableHttp)(params=SERVER) as server:
        reply = await Runner.run(Agent(name="client", model=model, mcp_servers=[server]), QUESTION, max_turns=4)
        return reply.final_output


answer(ask)
