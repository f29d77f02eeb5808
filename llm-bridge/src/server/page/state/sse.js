// Reading a `text/event-stream` body. EventSource cannot send a key.

// A `\r` at the very end may be the first half of a `\r\n`, so it waits.
const LINE_END = /\r\n|\n|\r(?!$)/;

/**
 * Yields every event with its name and id; comments are skipped.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<{ data: string, event: string, id: string }>}
 */
export async function* events(body) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let rest = '';
  /** @type {string[]} */
  let data = [];
  let event = '';
  let id = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(LINE_END);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        const content = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
        if (line === '') {
          if (data.length > 0) yield { data: data.join('\n'), event, id };
          data = [];
          event = '';
        } else if (field === 'data') data.push(content);
        else if (field === 'event') event = content;
        else if (field === 'id') id = content;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
