// Checks that print a line each and a sum at the end; the same as checks.py.

export const URL_UNDER_TEST = process.env.TOOLRACK_URL ?? 'http://127.0.0.1:7331';
export const DEMO = (process.env.TOOLRACK_MODEL ?? 'demo') === 'demo';
const WHO = process.env.TOOLRACK_CLIENT ?? '';

export const QUESTION = [{ role: 'user', content: 'What is (17 + 4) * 23?' }];
export const ORDER = [{ role: 'user', content: 'What is the state of order 4711?' }];
export const ORDER_SCHEMA = {
  type: 'object',
  properties: { order: { type: 'integer', description: 'The number of the order' } },
  required: ['order'],
};
export const ORDER_DESCRIPTION = 'Look up the state of an order by its number.';
export const RESULT = { state: 'shipped on Tuesday' };
const MARKUP = ['<tool_call', '</tool_call', '<function=', '</function', '<parameter', '{"name"', '"arguments"', '```'];

let passed = 0;
let failed = 0;

export async function check(name, body) {
  const began = performance.now();
  try {
    await body();
    passed += 1;
    console.log(`ok      ${WHO}: ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${WHO}: ${name}\n        ${String(error?.stack ?? error).replaceAll('\n', '\n        ')}`);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

export function expect(truth, what) {
  if (!truth) throw new Error(typeof what === 'string' ? what : JSON.stringify(what));
}

export function answered(text) {
  expect(typeof text === 'string', `no text but ${text}`);
  if (!DEMO) return;
  expect(text.includes('483'), `no 483 in ${text}`);
  expect(!MARKUP.some((mark) => text.includes(mark)), `markup in ${text}`);
}

export function ordered(name, input) {
  expect(name === 'order_state', `called ${name}`);
  expect(Number.isInteger(input.order) && Object.keys(input).length === 1, input);
  if (DEMO) expect(input.order === 4711, input);
}

export function reported(text) {
  expect(typeof text === 'string', `no text but ${text}`);
  if (DEMO) expect(text.includes('shipped on Tuesday'), `the result is not in ${text}`);
}
