// The openai package: chat completions and Responses.

import { isDeepStrictEqual } from 'node:util';
import OpenAI from 'openai';
import { abandoned, serve } from './driver.mjs';

const client = ({ url, key, retries }) => new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: retries, timeout: 30_000 });
const dataUrl = (picture) => `data:image/png;base64,${picture}`;
const isNamed = (choice) => typeof choice === 'object';

/** What stands beside the chat. */
const BESIDE = {
  model: async (api, model) => (await api.models.retrieve(model)).id,
  embedding: async (api, model) => {
    const made = await api.embeddings.create({ model, input: 'Hello', encoding_format: 'float' });
    return made.data[0].embedding.join(' ');
  },
  completion: async (api, model) => (await api.completions.create({ model, prompt: 'Hello' })).choices[0].text,
};

const chat = {
  can: ['tools', 'parallel', 'choice', 'none', 'named', 'schema', 'picture', 'stop', 'abort', 'whole', 'pieces', 'extra', 'key', 'beside'],

  begin: ({ messages }) => messages.map(({ role, text, picture }) => ({
    role,
    content: picture ? [{ type: 'text', text }, { type: 'image_url', image_url: { url: dataUrl(picture) } }] : text,
  })),

  async ask(wanted, messages, outcome) {
    if (wanted.beside) {
      outcome.text = await BESIDE[wanted.beside](client(wanted), wanted.model);
      return [];
    }
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

/** What the server has of two responses, of which the last continues the first; it is deleted. */
async function kept(api, first, last) {
  const items = [];
  for await (const { type } of api.inputItems.list(last.id, { order: 'asc', limit: 2 })) items.push(type);
  const [gone, same] = [[], []];
  for (const one of [first, last]) {
    same.push(isDeepStrictEqual(plain(await api.retrieve(one.id)), plain(one)));
    await api.delete(one.id);
    const status = await api.retrieve(one.id).then(() => 200, (error) => error.status);
    gone.push(status);
  }
  return { items, same: same.every(Boolean), gone };
}

/** A response without what the SDK has read in it. */
function plain(response) {
  const { output_text, output_parsed, _request_id, ...rest } = JSON.parse(JSON.stringify(response));
  for (const item of rest.output) {
    delete item.parsed_arguments;
    for (const part of item.content ?? []) delete part.parsed;
  }
  return rest;
}

const responses = {
  can: ['tools', 'parallel', 'choice', 'none', 'named', 'schema', 'picture', 'abort', 'whole', 'pieces', 'key', 'kept'],

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
      store: wanted.kept,
      ...(wanted.previous && { previous_response_id: wanted.previous.id }),
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
    const calls = reply.output.filter(({ type }) => type === 'function_call')
      .map((call) => [call.call_id, call.name, JSON.parse(call.arguments)]);
    if (!wanted.kept) {
      items.push(...reply.output);
    } else if (calls.length > 0) {
      items.length = 0;
      wanted.previous = reply;
    } else {
      outcome.json = await kept(api, wanted.previous, reply);
    }
    return calls;
  },

  give(items, results) {
    items.push(...results.map(([id, , , text]) => ({ type: 'function_call_output', call_id: id, output: text })));
  },
};

await serve({ chat, responses });
