// What the tab remembers. A browser may refuse storage altogether; then
// nothing is remembered, and nothing else changes.

const PREFIX = 'toolrack.';

/** The stored value of `key`, or `fallback`. */
export function recall(key, fallback) {
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + key)) ?? fallback;
  } catch {
    return fallback;
  }
}

/** Stores a value; tells whether there was room for it. */
export function remember(key, value) {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
