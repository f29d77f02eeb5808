// The ollama package.

import { Ollama } from 'ollama';
import { serve } from './driver.mjs';

const chat = {
  can: ['tools', 'parallel', 'schema', 'picture', 'stop', 'abort', 'whole', 'key'],

  begin: ({ messages }) => messages.map(({ role, text, picture }) => (
    { role, content: text, ...(picture && { images: [picture] }) })),

  async ask(wanted, messages, outcome) {
    const client = new Ollama({ host: wanted.url, headers: { Authorization: `Bearer ${wanted.key}` } });
    const asked = {
      model: wanted.model,
      messages,
      ...(wanted.tools.length && {
        tools: wanted.tools.map(({ name, description, schema }) => (
          { type: 'function', function: { name, description, parameters: schema } })),
      }),
      ...(wanted.schema && { format: wanted.schema }),
      options: { ...(wanted.stop && { stop: wanted.stop }), ...(wanted.max_tokens && { num_predict: wanted.max_tokens }) },
    };
    if (wanted.abort) {
      const stream = await client.chat({ ...asked, stream: true });
      try {
        for await (const part of stream) {
          if (part.message.content) stream.abort();
        }
      } catch (error) {
        if (error.name !== 'AbortError') throw error;
      }
      return [];
    }
    const replies = [];
    if (wanted.stream) {
      for await (const part of await client.chat({ ...asked, stream: true })) replies.push(part);
    } else {
      replies.push(await client.chat(asked));
    }
    outcome.text = replies.map(({ message }) => message.content ?? '').join('');
    outcome.usage = [replies.at(-1).prompt_eval_count, replies.at(-1).eval_count];
    if (wanted.schema) outcome.json = JSON.parse(outcome.text);
    const calls = replies.flatMap(({ message }) => message.tool_calls ?? []);
    messages.push({ role: 'assistant', content: outcome.text, tool_calls: calls });
    return calls.map(({ function: { name, arguments: input } }) => [null, name, input]);
  },

  give(messages, results) {
    messages.push(...results.map(([, name, , text]) => ({ role: 'tool', tool_name: name, content: text })));
  },
};

await serve({ chat });
