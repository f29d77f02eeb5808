"""pydantic-ai: an agent with the tools of an MCP server."""

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from asked import MODEL, QUESTION, SERVER, answer


async def ask():
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=AsyncOpenAI(**MODEL)))
    agent = Agent(model, toolsets=[MCPToolset({"mcpServers": {"rack": SERVER}})])
    async with agent:
        return (await agent.run(QUESTION)).output


answer(ask)
