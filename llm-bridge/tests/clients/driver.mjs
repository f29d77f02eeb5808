// What the drivers of the SDKs in JavaScript have in common; the same as driver.py.

import { createInterface } from 'node:readline';

const SETTLED = {
  tools: [], results: {}, choice: null, schema: null, stop: null, stream: false, retries: 0, abort: false, extra: {}, max_tokens: null,
  kept: false, again: null, beside: null,
};
const ROUNDS = 4;

/** What came of a request; `text` is the last answer, `calls` all that the SDK handed out. */
export class Outcome {
  text = '';
  calls = [];
  json = null;
  usage = null;
  firstCall = null;

  seesCall() {
    this.firstCall ??= performance.now();
  }

  fields() {
    const { text, calls, json, usage, firstCall } = this;
    return { text, calls, json, usage, early: firstCall && (performance.now() - firstCall) / 1000 };
  }
}

/** Asks until there are no calls any more: `ask` gives the calls, as [id, name, arguments], and `give` takes their results. */
export async function rounds({ begin, ask, give }, wanted, outcome) {
  const state = begin(wanted);
  for (let round = 0; round < ROUNDS; round += 1) {
    const calls = await ask(wanted, state, outcome);
    outcome.calls.push(...calls.map(([, name, input]) => [name, input]));
    if (calls.length === 0 || wanted.abort) return;
    give(state, calls.map((call) => [...call, wanted.results[call[1]]]));
    // A choice is for the first answer; in the next it would ask for a call for ever.
    wanted.choice = null;
  }
}

/** Reads a stream until there is text, and gives it up. */
export async function abandoned(stream, hasText, abort) {
  try {
    for await (const part of stream) {
      if (hasText(part)) abort.abort();
    }
  } catch (error) {
    if (!abort.signal.aborted) throw error;
  }
  if (!abort.signal.aborted) throw new Error('there was no text');
}

/** The first error of a chain that has a status. */
function failure(error) {
  const seen = [];
  for (let one = error; one && seen.length < 8; one = one.cause ?? one.lastError ?? one.error) {
    seen.push(String(one.message ?? one));
    const status = [one.status, one.statusCode, one.status_code, one.code].find(Number.isInteger);
    if (status !== undefined) return { type: error.name ?? error.constructor?.name, status, message: seen.join(' ') };
  }
  return { type: error?.constructor?.name, status: null, message: `${seen.join(' ')} ${error?.stack ?? ''}` };
}

/** Runs the driver that the command line names. */
export async function serve(drivers) {
  const driver = drivers[process.argv[2]];
  const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
  console.log = console.warn = console.info = console.error;
  write({ can: driver.can });
  for await (const line of createInterface({ input: process.stdin })) {
    const outcome = new Outcome();
    try {
      await (driver.run ?? ((...both) => rounds(driver, ...both)))({ ...SETTLED, ...JSON.parse(line) }, outcome);
      write(outcome.fields());
    } catch (error) {
      write({ ...outcome.fields(), error: failure(error) });
    }
  }
}
