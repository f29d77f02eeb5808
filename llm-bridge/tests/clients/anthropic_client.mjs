// The @anthropic-ai/sdk package.

import Anthropic from '@anthropic-ai/sdk';
import { abandoned, serve } from './driver.mjs';

const messages = {
  can: ['tools', 'parallel', 'choice', 'none', 'named', 'schema', 'picture', 'stop', 'abort', 'whole', 'pieces', 'key'],

  begin: (wanted) => wanted.messages.map(({ role, text, picture }) => ({
    role,
    content: picture
      ? [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: picture } }, { type: 'text', text }]
      : text,
  })),

  async ask(wanted, said, outcome) {
    const client = new Anthropic({ baseURL: wanted.url, apiKey: wanted.key, maxRetries: wanted.retries, timeout: 30_000 });
    const system = said.find(({ role }) => role === 'system');
    const { choice } = wanted;
    const asked = {
      model: wanted.model,
      max_tokens: wanted.max_tokens ?? 1000,
      messages: said.filter((message) => message !== system),
      ...(system && { system: system.content }),
      ...(wanted.tools.length && {
        tools: wanted.tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
      }),
      ...(choice && { tool_choice: choice.name ? { type: 'tool', ...choice } : { type: choice === 'required' ? 'any' : choice } }),
      ...(wanted.schema && { output_config: { format: { type: 'json_schema', schema: wanted.schema } } }),
      ...(wanted.stop && { stop_sequences: wanted.stop }),
    };
    if (wanted.abort) {
      const abort = new AbortController();
      const stream = await client.messages.create({ ...asked, stream: true }, { signal: abort.signal });
      await abandoned(stream, (event) => event.delta?.text, abort);
      return [];
    }
    let reply;
    if (wanted.stream) {
      const stream = client.messages.stream(asked);
      stream.on('inputJson', () => outcome.seesCall());
      reply = await stream.finalMessage();
    } else {
      reply = await client.messages.create(asked);
    }
    outcome.text = reply.content.filter(({ type }) => type === 'text').map(({ text }) => text).join('');
    outcome.usage = [reply.usage.input_tokens, reply.usage.output_tokens];
    if (wanted.schema) outcome.json = JSON.parse(outcome.text);
    said.push({ role: 'assistant', content: reply.content });
    return reply.content.filter(({ type }) => type === 'tool_use').map(({ id, name, input }) => [id, name, input]);
  },

  give(said, results) {
    said.push({
      role: 'user',
      content: results.map(([id, , , text]) => ({ type: 'tool_result', tool_use_id: id, content: text })),
    });
  },
};

await serve({ messages });
