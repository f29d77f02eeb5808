// The server's clock, by which it says until when something can be answered. This device's may be another.

/** A header says whole seconds, and takes its time: so much is no difference, in milliseconds. */
const SAME = 2_000;

let ahead = 0;

/**
 * Takes the time from an answer.
 * @param {Response} response
 */
export function setClock({ headers }) {
  const difference = Date.parse(headers.get('date') ?? '') - Date.now();
  if (Number.isFinite(difference)) ahead = Math.abs(difference) < SAME ? 0 : difference;
}

/** The time on the server, in milliseconds. */
export const serverNow = () => Date.now() + ahead;
