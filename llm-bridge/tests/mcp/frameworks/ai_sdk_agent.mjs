// The Vercel AI SDK with the tools of an MCP server; asked as those in asked.py.

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as Stdio } from '@ai-sdk/mcp/mcp-stdio';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs } from 'ai';

const server = JSON.parse(process.env.TOOLRACK_MCP);
const client = await createMCPClient({ transport: server.url ? { type: 'http', url: server.url } : new Stdio(server) });
try {
  const model = createOpenAICompatible({ name: 'scripted', baseURL: process.env.TOOLRACK_UPSTREAM })('scripted');
  const { text } = await generateText({
    model, tools: await client.tools(), prompt: 'Where are the keys of the house?', stopWhen: stepCountIs(4),
  });
  console.log(JSON.stringify({ text }));
} finally {
  await client.close();
}
