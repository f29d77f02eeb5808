// The openai package.

import OpenAI from 'openai';
import {
  DEMO, ORDER, ORDER_DESCRIPTION, ORDER_SCHEMA, QUESTION, RESULT, URL_UNDER_TEST, answered, check, expect, finish,
  ordered, reported,
} from './checks.mjs';

const client = new OpenAI({ baseURL: `${URL_UNDER_TEST}/v1`, apiKey: 'any', maxRetries: 0, timeout: 60_000 });
const model = (await client.models.list()).data[0].id;
const bound = DEMO ? {} : { max_tokens: 400, seed: 1 };
const server = DEMO ? {} : { tool_choice: 'none' };
const named = DEMO ? {} : { tool_choice: { type: 'function', function: { name: 'order_state' } } };
const tools = [{
  type: 'function',
  function: { name: 'order_state', description: ORDER_DESCRIPTION, parameters: ORDER_SCHEMA },
}];
const create = (body, options) => client.chat.completions.create({ model, ...bound, ...body }, options);

await check('models', async () => {
  const ids = [];
  for await (const one of client.models.list()) ids.push(one.id);
  expect(ids.length === 1 && ids[0], ids);
});

await check('chat', async () => {
  const reply = await create({ messages: QUESTION, ...server });
  answered(reply.choices[0].message.content);
  expect(reply.usage.total_tokens > 0, reply);
});

await check('stream, in the naive loop', async () => {
  let text = '';
  let events = 0;
  for await (const chunk of await create({ messages: QUESTION, stream: true, ...server })) {
    text += chunk.choices[0].delta.content || '';
    if (chunk.x_toolrack) events += 1;
  }
  answered(text);
  if (DEMO) expect(events >= 2, `${events} events`);
});

await check("stream, in the package's accumulator", async () => {
  const stream = client.chat.completions.stream({ model, messages: QUESTION, ...bound, ...server });
  answered(await stream.finalContent() ?? '');
});

await check('usage at the end of a stream', async () => {
  const chunks = [];
  const stream = await create({
    messages: QUESTION, stream: true, stream_options: { include_usage: true }, ...server,
  });
  for await (const chunk of stream) chunks.push(chunk);
  const last = chunks.pop();
  expect(last.choices.length === 0 && last.usage.total_tokens > 0, last);
  expect(!chunks.some((chunk) => chunk.usage), 'usage in an earlier chunk');
});

for (const stream of [false, true]) {
  await check(`its own tool, run by the package${stream ? ', streamed' : ''}`, async () => {
    const calls = [];
    const runner = client.chat.completions.runTools({
      model,
      stream,
      ...bound,
      messages: ORDER,
      tools: [{
        type: 'function',
        function: {
          ...tools[0].function,
          parse: JSON.parse,
          function: (input) => { calls.push(input); return RESULT; },
        },
      }],
    });
    // A model of noise may call again and again, or call the server's tools; that the package follows is what counts.
    const text = await runner.finalContent().catch((error) => { if (DEMO) throw error; return ''; });
    reported(text ?? '');
    if (DEMO) expect(calls.length === 1, calls);
    for (const input of calls) ordered('order_state', input);
  });
}

await check('its own tool, there and back, by hand', async () => {
  const first = await create({ messages: ORDER, tools, ...named });
  const { message } = first.choices[0];
  expect(first.choices[0].finish_reason === 'tool_calls' && message.tool_calls.length === 1, first);
  const [call] = message.tool_calls;
  ordered(call.function.name, JSON.parse(call.function.arguments));
  const result = { role: 'tool', tool_call_id: call.id, content: JSON.stringify(RESULT) };
  let text = '';
  for await (const chunk of await create({ messages: [...ORDER, message, result], tools, stream: true })) {
    text += chunk.choices[0].delta.content ?? '';
  }
  reported(text);
});

await check("a bad request is the package's error", async () => {
  for (const stream of [false, true]) {
    const error = await create({ messages: [], stream }).then(() => null, (error) => error);
    expect(error instanceof OpenAI.BadRequestError, String(error));
    expect(error.status === 400 && error.param === 'messages' && error.type === 'invalid_request_error', error);
  }
});

await check('given up in mid-stream, the next request is answered', async () => {
  const long = DEMO ? {} : { max_tokens: 100_000, logit_bias: { 4: -100 } };
  const abort = new AbortController();
  const stream = await create({ messages: QUESTION, stream: true, ...server, ...long }, { signal: abort.signal });
  let chunks = 0;
  for await (const _ of stream) {
    chunks += 1;
    abort.abort();
  }
  expect(chunks >= 1, 'no chunk');
  const reply = await create({ messages: QUESTION, ...server }, { timeout: 20_000 });
  answered(reply.choices[0].message.content);
});

finish();
