// What the browser remembers. It may refuse storage altogether; then nothing is remembered, and nothing else changes.

const PREFIX = 'toolrack.';

/**
 * The value of `key` for this tab, or `fallback`.
 * @template T
 * @param {string} key
 * @param {T} fallback
 * @returns {T}
 */
export function recall(key, fallback) {
  return read(() => sessionStorage, key, fallback);
}

/**
 * Stores a value for this tab; tells whether there was room for it. `null` forgets it.
 * @param {string} key
 * @param {unknown} value
 */
export function remember(key, value) {
  return write(() => sessionStorage, key, value);
}

/**
 * The value of `key` for all tabs, now and later.
 * @template T
 * @param {string} key
 * @param {T} fallback
 * @returns {T}
 */
export function preference(key, fallback) {
  return read(() => localStorage, key, fallback);
}

/**
 * Stores a value for all tabs; `null` forgets it.
 * @param {string} key
 * @param {unknown} value
 */
export function prefer(key, value) {
  return write(() => localStorage, key, value);
}

/**
 * Forgets all values whose keys begin so.
 * @param {string} begin
 */
export function forget(begin) {
  for (const storage of [() => sessionStorage, () => localStorage]) {
    try {
      for (const key of Object.keys(storage())) if (key.startsWith(PREFIX + begin)) storage().removeItem(key);
    } catch {
      // It has nothing then.
    }
  }
}

/**
 * @template T
 * @param {() => Storage} storage
 * @param {string} key
 * @param {T} fallback
 * @returns {T}
 */
function read(storage, key, fallback) {
  try {
    return JSON.parse(storage().getItem(PREFIX + key) ?? 'null') ?? fallback;
  } catch {
    return fallback;
  }
}

/**
 * @param {() => Storage} storage
 * @param {string} key
 * @param {unknown} value
 */
function write(storage, key, value) {
  try {
    if (value === null) storage().removeItem(PREFIX + key);
    else storage().setItem(PREFIX + key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
