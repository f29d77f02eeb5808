// The @google/genai package.

import { GoogleGenAI } from '@google/genai';
import { abandoned, serve } from './driver.mjs';

const MODES = { auto: 'AUTO', none: 'NONE', required: 'ANY' };

const generate = {
  can: ['tools', 'parallel', 'choice', 'none', 'named', 'schema', 'picture', 'stop', 'abort', 'whole', 'key'],

  begin: ({ messages }) => messages.filter(({ role }) => role !== 'system').map(({ role, text, picture }) => ({
    role: role === 'assistant' ? 'model' : 'user',
    parts: [{ text }, ...(picture ? [{ inlineData: { mimeType: 'image/png', data: picture } }] : [])],
  })),

  async ask(wanted, contents, outcome) {
    const client = new GoogleGenAI({
      apiKey: wanted.key,
      httpOptions: {
        baseUrl: wanted.url,
        timeout: 30_000,
        ...(wanted.retries && { retryOptions: { attempts: wanted.retries + 1 } }),
      },
    });
    const system = wanted.messages.find(({ role }) => role === 'system');
    const { choice } = wanted;
    const abort = new AbortController();
    const config = {
      abortSignal: abort.signal,
      ...(system && { systemInstruction: system.text }),
      ...(wanted.tools.length && {
        tools: [{
          functionDeclarations: wanted.tools.map(({ name, description, schema }) => (
            { name, description, parametersJsonSchema: schema })),
        }],
      }),
      ...(choice && {
        toolConfig: {
          functionCallingConfig: choice.name ? { mode: 'ANY', allowedFunctionNames: [choice.name] } : { mode: MODES[choice] },
        },
      }),
      ...(wanted.schema && { responseMimeType: 'application/json', responseJsonSchema: wanted.schema }),
      ...(wanted.stop && { stopSequences: wanted.stop }),
      ...(wanted.max_tokens && { maxOutputTokens: wanted.max_tokens }),
    };
    const asked = { model: wanted.model, contents, config };
    if (wanted.abort) {
      await abandoned(await client.models.generateContentStream(asked), (part) => part.text, abort);
      return [];
    }
    const replies = [];
    if (wanted.stream) {
      for await (const part of await client.models.generateContentStream(asked)) replies.push(part);
    } else {
      replies.push(await client.models.generateContent(asked));
    }
    const parts = replies.flatMap((reply) => reply.candidates?.[0]?.content?.parts ?? []);
    outcome.text = parts.filter(({ text, thought }) => text && !thought).map(({ text }) => text).join('');
    const usage = replies.at(-1).usageMetadata;
    outcome.usage = [usage.promptTokenCount, usage.candidatesTokenCount];
    if (wanted.schema) outcome.json = JSON.parse(outcome.text);
    contents.push({ role: 'model', parts });
    return parts.filter((part) => part.functionCall).map(({ functionCall: { id, name, args } }) => [id, name, args]);
  },

  give(contents, results) {
    contents.push({
      role: 'user',
      parts: results.map(([id, name, , text]) => ({ functionResponse: { id, name, response: { output: text } } })),
    });
  },
};

await serve({ generate });
