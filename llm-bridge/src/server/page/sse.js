// Reading a `text/event-stream` body. EventSource cannot send a POST.

// A `\r` at the very end may be the first half of a `\r\n`, so it waits.
const LINE_END = /\r\n|\n|\r(?!$)/;

/** Yields the data of every event; comments and other fields are skipped. */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(LINE_END);
      rest = lines.pop();
      for (const line of lines) {
        if (line === '' && data.length > 0) {
          yield data.join('\n');
          data = [];
        } else if (line.startsWith('data:')) {
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
