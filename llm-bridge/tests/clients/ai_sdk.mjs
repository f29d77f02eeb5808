// The Vercel AI SDK with its providers; it runs the client's tools itself.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { createOllama } from 'ai-sdk-ollama';
import { serve } from './driver.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const PROVIDERS = {
  chat: ({ url, key, model }) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).chat(model),
  responses: ({ url, key, model }) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).responses(model),
  compatible: ({ url, key, model }) => createOpenAICompatible({
    name: 'toolrack', baseURL: `${url}/v1`, apiKey: key, includeUsage: true, supportsStructuredOutputs: true,
  })(model),
  anthropic: ({ url, key, model }) => createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(model),
  google: ({ url, key, model }) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: key })(model),
  ollama: ({ url, key, model }) => createOllama({ baseURL: url, apiKey: key })(model),
};

function messageOf({ role, text, picture }) {
  if (!picture) return { role, content: text };
  return { role, content: [{ type: 'text', text }, { type: 'file', mediaType: 'image/png', data: picture }] };
}

/** A call of one of its tools; those of the server are in the stream, too, where the provider knows them. */
const isOwn = ({ providerExecuted }) => !providerExecuted;

function driver(provider, ...cannot) {
  const all = [
    'tools', 'parallel', 'choice', 'none', 'named', 'schema', 'picture', 'stop', 'abort', 'whole', 'pieces', 'key', 'references',
  ];

  async function run(wanted, outcome) {
    const system = wanted.messages.find(({ role }) => role === 'system');
    const abort = new AbortController();
    const { choice } = wanted;
    const asked = {
      model: PROVIDERS[provider](wanted),
      maxRetries: wanted.retries,
      messages: wanted.messages.filter((message) => message !== system).map(messageOf),
      abortSignal: abort.signal,
      ...(system && { instructions: system.text }),
      ...(wanted.tools.length && {
        tools: Object.fromEntries(wanted.tools.map(({ name, description, schema }) => [name, tool({
          description, inputSchema: jsonSchema(schema), execute: async () => wanted.results[name],
        })])),
      }),
      ...(choice && { toolChoice: choice.name ? { type: 'tool', toolName: choice.name } : choice }),
      // A choice is for the first answer; in the next it would ask for a call for ever.
      prepareStep: ({ stepNumber }) => (stepNumber > 0 && choice ? { toolChoice: 'auto' } : {}),
      ...(wanted.schema && { output: Output.object({ schema: jsonSchema(wanted.schema) }) }),
      ...(wanted.stop && { stopSequences: wanted.stop }),
      ...(wanted.max_tokens && { maxOutputTokens: wanted.max_tokens }),
      stopWhen: stepCountIs(4),
      providerOptions: {
        // Unless it is kept, what was said is sent again, not referred to.
        openai: { store: wanted.kept },
        // Of a model that it does not know it would ask for a call in place of a form.
        anthropic: { structuredOutputMode: 'outputFormat' },
      },
    };
    const asks = async (messages) => {
      if (!wanted.stream) return generateText({ ...asked, messages });
      const errors = [];
      const stream = streamText({ ...asked, messages, onError: ({ error }) => errors.push(error) });
      for await (const part of stream.fullStream) {
        if (part.type === 'tool-input-delta') outcome.seesCall();
        if (wanted.abort && part.type === 'text-delta') abort.abort();
      }
      if (errors.length > 0 && !wanted.abort) throw errors[0];
      return stream;
    };
    const read = async (reply) => outcome.calls.push(...(await reply.steps)
      .flatMap(({ toolCalls }) => toolCalls).filter(isOwn).map(({ toolName, input }) => [toolName, input]));
    let reply = await asks(asked.messages);
    if (wanted.abort) return;
    await read(reply);
    if (wanted.again) {
      const said = await reply.responseMessages;
      reply = await asks([...asked.messages, ...said, { role: 'user', content: wanted.again }]);
      await read(reply);
    }
    outcome.text = await reply.text;
    const usage = (await reply.totalUsage) ?? (await reply.usage);
    outcome.usage = [usage.inputTokens, usage.outputTokens];
    if (wanted.schema) outcome.json = await reply.output;
  }

  return { can: all.filter((one) => !cannot.includes(one)), run };
}

await serve({
  chat: driver('chat', 'references'),
  // The API has no stop sequences.
  responses: driver('responses', 'stop'),
  compatible: driver('compatible', 'references'),
  anthropic: driver('anthropic', 'references'),
  // Calls come whole in the API.
  google: driver('google', 'pieces', 'references'),
  // The API has no choice of tools, and the provider reads an answer that is given up to its end.
  ollama: driver('ollama', 'references', 'abort', 'pieces', 'choice', 'none', 'named'),
});
