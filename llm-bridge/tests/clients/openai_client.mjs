// The openai package: chat completions and Responses.

import OpenAI from 'openai';
import { abandoned, serve } from './driver.mjs';

const client = ({ url, key, retries }) => new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: retries, timeout: 30_000 });
const dataUrl = (picture) => `data:image/png;base64,${picture}`;
const isNamed = (choice) => typeof choice === 'object';

const chat = {
  can: ['tools', 'parallel', 'choice', 'none', 'named', 'schema', 'picture', 'stop', 'abort', 'whole', 'pieces', 'extra', 'key'],

  begin: ({ messages }) => messages.map(({ role, text, picture }) => ({
    role,
    content: picture ? [{ type: 'text', text }, { type: 'image_url', image_url: { url: dataUrl(picture) } }] : text,
  })),

  async ask(wanted, messages, outcome) {
    const asked = {
      model: wanted.model,
      messages,
      ...wanted.extra,
      ...(wanted.tools.length && {
        tools: wanted.tools.map(({ name, description, schema }) => (
          { type: 'function', function: { name, description, parameters: schema } })),
      }),
      ...(wanted.choice && { tool_choice: isNamed(wanted.choice) ? { type: 'function', function: wanted.choice } : wanted.choice }),
      ...(wanted.schema && {
        response_format: { type: 'json_schema', json_schema: { name: 'number', schema: wanted.schema, strict: true } },
      }),
      ...(wanted.stop && { stop: wanted.stop }),
      ...(wanted.max_tokens && { max_tokens: wanted.max_tokens }),
    };
    const { completions } = client(wanted).chat;
    if (wanted.abort) {
      const abort = new AbortController();
      const stream = await completions.create({ ...asked, stream: true }, { signal: abort.signal });
      await abandoned(stream, (chunk) => chunk.choices[0].delta.content, abort);
      return [];
    }
    let reply;
    if (wanted.stream) {
      const stream = completions.stream({ ...asked, stream_options: { include_usage: true } });
      stream.on('tool_calls.function.arguments.delta', () => outcome.seesCall());
      reply = await stream.finalChatCompletion();
    } else {
      reply = await completions.create(asked);
    }
    const { message } = reply.choices[0];
    outcome.text = message.content ?? '';
    outcome.usage = [reply.usage.prompt_tokens, reply.usage.completion_tokens];
    if (wanted.schema) outcome.json = JSON.parse(outcome.text);
    messages.push(message);
    return (message.tool_calls ?? []).map((call) => [call.id, call.function.name, JSON.parse(call.function.arguments)]);
  },

  give(messages, results) {
    messages.push(...results.map(([id, , , text]) => ({ role: 'tool', tool_call_id: id, content: text })));
  },
};

const responses = {
  can: ['tools', 'parallel', 'choice', 'none', 'named', 'schema', 'picture', 'abort', 'whole', 'pieces', 'key'],

  begin: ({ messages }) => messages.map(({ role, text, picture }) => ({
    role,
    content: picture
      ? [{ type: 'input_text', text }, { type: 'input_image', image_url: dataUrl(picture), detail: 'auto' }]
      : text,
  })),

  async ask(wanted, items, outcome) {
    const asked = {
      model: wanted.model,
      input: items,
      store: false,
      ...(wanted.tools.length && {
        tools: wanted.tools.map(({ name, description, schema }) => (
          { type: 'function', name, description, parameters: schema, strict: false })),
      }),
      ...(wanted.choice && { tool_choice: isNamed(wanted.choice) ? { type: 'function', ...wanted.choice } : wanted.choice }),
      ...(wanted.schema && { text: { format: { type: 'json_schema', name: 'number', schema: wanted.schema, strict: true } } }),
      ...(wanted.max_tokens && { max_output_tokens: wanted.max_tokens }),
    };
    const { responses: api } = client(wanted);
    if (wanted.abort) {
      const abort = new AbortController();
      const stream = await api.create({ ...asked, stream: true }, { signal: abort.signal });
      await abandoned(stream, (event) => event.type === 'response.output_text.delta', abort);
      return [];
    }
    let reply;
    if (wanted.stream) {
      const stream = api.stream(asked);
      stream.on('response.function_call_arguments.delta', () => outcome.seesCall());
      reply = await stream.finalResponse();
    } else {
      reply = await api.create(asked);
    }
    outcome.text = reply.output_text;
    outcome.usage = [reply.usage.input_tokens, reply.usage.output_tokens];
    if (wanted.schema) outcome.json = JSON.parse(outcome.text);
    items.push(...reply.output);
    return reply.output.filter(({ type }) => type === 'function_call')
      .map((call) => [call.call_id, call.name, JSON.parse(call.arguments)]);
  },

  give(items, results) {
    items.push(...results.map(([id, , , text]) => ({ type: 'function_call_output', call_id: id, output: text })));
  },
};

await serve({ chat, responses });
