"""LangChain's adapter of MCP: the model is given the tools of a server, and its calls are run there."""

from langchain_core.messages import HumanMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

from asked import MODEL, QUESTION, SERVER, answer


async def ask():
    transport = "stdio" if "command" in SERVER else "streamable_http"
    tools = await MultiServerMCPClient({"rack": {**SERVER, "transport": transport}}).get_tools()
    model, by_name = ChatOpenAI(model="scripted", **MODEL).bind_tools(tools), {tool.name: tool for tool in tools}
    messages = [HumanMessage(QUESTION)]
    while True:
        messages.append(reply := await model.ainvoke(messages))
        if not reply.tool_calls:
            return reply.text
        messages += [await by_name[call["name"]].ainvoke(call) for call in reply.tool_calls]


answer(ask)
