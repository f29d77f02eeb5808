// The Vercel AI SDK with its provider for OpenAI-compatible servers.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import {
  DEMO, ORDER, ORDER_DESCRIPTION, ORDER_SCHEMA, QUESTION, RESULT, URL_UNDER_TEST, answered, check, expect, finish,
  ordered, reported,
} from './checks.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;
const provider = createOpenAICompatible({
  name: 'toolrack', baseURL: `${URL_UNDER_TEST}/v1`, apiKey: 'any', includeUsage: true,
});
const { data } = await (await fetch(`${URL_UNDER_TEST}/v1/models`)).json();
const model = provider(data[0].id);
const common = { model, maxRetries: 0, ...(DEMO ? {} : { maxOutputTokens: 400, seed: 1 }) };

function ownTools(inputs) {
  return {
    order_state: tool({
      description: ORDER_DESCRIPTION,
      inputSchema: jsonSchema(ORDER_SCHEMA),
      execute: async (input) => { inputs.push(input); return RESULT; },
    }),
  };
}

// The tiny model calls what it likes, without instructions.
const named = DEMO ? {} : { toolChoice: { type: 'tool', toolName: 'order_state' } };
const steps = DEMO ? 5 : 1;

/** All parts of a stream; the errors among them. */
async function read(stream) {
  const parts = [];
  for await (const part of stream.fullStream) parts.push(part);
  return { parts, errors: parts.filter((part) => part.type === 'error').map((part) => String(part.error)) };
}

await check('chat', async () => {
  const { text, usage } = await generateText({ ...common, messages: QUESTION });
  answered(text);
  expect(usage.totalTokens > 0, usage);
});

await check('stream, with usage', async () => {
  const stream = streamText({ ...common, messages: QUESTION });
  const { errors } = await read(stream);
  expect(errors.length === 0, errors);
  answered(await stream.text);
  expect((await stream.totalUsage).totalTokens > 0, await stream.totalUsage);
});

await check('its own tool, run by the package', async () => {
  const inputs = [];
  const { text, steps: taken } = await generateText({
    ...common, ...named, messages: ORDER, tools: ownTools(inputs), stopWhen: stepCountIs(steps),
  });
  expect(inputs.length === 1, inputs);
  ordered(taken[0].toolCalls[0].toolName, inputs[0]);
  reported(text);
});

await check('its own tool, run by the package, streamed', async () => {
  const inputs = [];
  const stream = streamText({
    ...common, ...named, messages: ORDER, tools: ownTools(inputs), stopWhen: stepCountIs(steps),
  });
  const { errors } = await read(stream);
  expect(errors.length === 0, errors);
  expect(inputs.length === 1, inputs);
  ordered('order_state', inputs[0]);
  reported(await stream.text);
});

await check("a bad request is the package's error", async () => {
  const bad = { ...common, messages: QUESTION, providerOptions: { toolrack: { n: 2 } } };
  const error = await generateText(bad).then(() => null, (error) => error);
  expect(APICallError.isInstance(error) && error.statusCode === 400 && error.message.includes('`n`'), String(error));
  const { errors } = await read(streamText({ ...bad, onError() {} }));
  expect(errors.length === 1 && errors[0].includes('`n`'), errors);
});

await check('given up in mid-stream, the next request is answered', async () => {
  const abort = new AbortController();
  const stream = streamText({ ...common, maxOutputTokens: 100_000, messages: QUESTION, abortSignal: abort.signal });
  let aborted = false;
  for await (const part of stream.fullStream) {
    if (part.type === 'text-delta') abort.abort();
    if (part.type === 'abort') aborted = true;
  }
  expect(aborted || !DEMO, 'not aborted');
  const { text } = await generateText({ ...common, messages: QUESTION, abortSignal: AbortSignal.timeout(20_000) });
  answered(text);
});

finish();
