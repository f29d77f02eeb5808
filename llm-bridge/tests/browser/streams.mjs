// What servers say of calls in streams, for the tests of cards.

export const SOURCES = `Sources for "why water boils":
1. Boiling <b onclick="alert(1)">water</b> (https://one.example/boil_(water)).
2. javascript:alert(1) http://two.example/?a=1&b=2, ${'long'.repeat(30)}`;

/** What the server sends of a call with a word to the user. */
export function research() {
  const call = { id: 'call-1', name: 'research' };
  const chunks = [
    { x_toolrack: { type: 'call_started', ...call, arguments: { query: 'why water boils' }, dialect: 'native' } },
    { x_toolrack: { type: 'call_finished', ...call, success: true, result: '1. Boiling water', message: SOURCES, duration_ms: 812 } },
    { choices: [{ delta: { content: 'Water boils when its vapour pressure reaches that of the air.' } }] },
    { choices: [{ delta: {}, finish_reason: 'stop' }] },
  ];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
}

/** What the server sends of a search in documents, and of an answer that names them. */
export function grounded() {
  const call = { id: 'call-1', name: 'retrieve_documents' };
  const passage = (source, section, place, text) => ({ source, section, place, kind: 'markdown', score: 7, text });
  const passages = [
    passage('notes/tea.md', 'Tea > Green', 'line 5', 'Green tea is steeped at 75 degrees. <b onclick="alert(1)">x</b>'),
    passage('notes/tea.md', 'Tea > Black', 'lines 8-9', 'Black tea is steeped at 95 degrees.'),
    passage('prices.csv', '', 'line 50', 'oolong costs 4'),
  ];
  const text = 'Green tea takes 75 degrees (notes/tea.md, Tea > Green, line 5), black tea 95 (`tea.md`, lines 8-9).\n\nOolong costs 4, says **prices.csv**. Not so: my-prices.csv, [1] and\n\n```\nprices.csv\n```\n';
  const chunks = [
    { x_toolrack: { type: 'call_started', ...call, arguments: { query: 'tea' }, dialect: 'native' } },
    { x_toolrack: { type: 'call_finished', ...call, success: true, result: { passages }, duration_ms: 8 } },
    { x_toolrack: { type: 'call_started', id: 'call-2', name: 'deep_analysis', arguments: { question: 'tea' }, dialect: 'native' } },
    { x_toolrack: { type: 'call_finished', id: 'call-2', name: 'deep_analysis', success: true, result: { answer: 'x [2]', sources: [{ number: 2, source: 'prices.csv', section: '', place: 'line 50' }] }, duration_ms: 8 } },
    { choices: [{ delta: { content: `${text}\nIt is 4 [2], and no note is \`list[2]\`.` } }] },
    { choices: [{ delta: {}, finish_reason: 'stop' }] },
  ];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
}

export const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAKAAAABQCAIAAAARP+ljAAAA4klEQVR42u3csQkAIAxFwWzgppbO6wKCI2SHFEHkwP7DuzYY+57yG2uWn92e3RAasNCAhQYMGLBdwHYB2wUMWGjAQgMWGrBdwHYB2wUMWGjAQgMWGjDgVmCx/t4FDFhowEIDBgzYLmC7gO0CBiw0YKEBCw3YLmC7gO0CBiw0YKEBCw0YcC+wWK4qhQYsNGDAgO0CtgvYLmDAQgMWGrDQgO0CtgvYLmDAQgMWGrDQgAEDtuufLLuuKu0CBiw0YKEBCw3YLmC7gO0CBiw0YKEBCw3YLmC7gO0CBiw0YKEBC/3gbgKYfTVlY3fNFwAAAABJRU5ErkJggg==';

/** What the server sends of calls whose results have parts. */
export function parts() {
  const call = { id: 'call-1', name: 'report' };
  const file = (name, size) => ({ name, size, id: name, path: `api/files/${name}/${name}`, mimeType: 'text/csv' });
  const message = (part, text) => ({ choices: [{ delta: { content: text } }], x_toolrack: { type: 'message', id: call.id, part } });
  const rows = Array.from({ length: 30 }, (_, day) => [`2026-11-${day + 1} <b>bold</b>`, day / 2, null]);
  const chunks = [
    { x_toolrack: { type: 'call_started', ...call, arguments: {}, dialect: 'native' } },
    message({ type: 'text', text: 'Reading ' }, 'Reading '),
    message({ type: 'text', text: 'the sensors.' }, 'the sensors.'),
    { x_toolrack: { type: 'call_finished', ...call, success: true, result: null, message: null, duration_ms: 812 } },
    message({ type: 'image', ...file('map.png', 250), mimeType: 'image/png' }, '![map.png](http://rack/map.png)'),
    message({ type: 'audio', ...file('wind.wav', 1644), mimeType: 'audio/wav' }, '[wind.wav](http://rack/wind.wav)'),
    message({ type: 'table', columns: ['day', 'degrees', 'wind'], rows, total: 230, ...file('table.csv', 5000) }, '| day | degrees | wind |'),
    message({ type: 'markdown', text: '**Storm** from the west.\n\n<img src=x onerror="alert(1)"><script>alert(2)</script>' }, '**Storm**'),
    message({ type: 'file', ...file('report.csv', 8) }, '[report.csv](http://rack/report.csv)'),
    message({ type: 'file', ...file('gone.csv', 8) }, '[gone.csv](http://rack/gone.csv)'),
    { choices: [{ delta: {}, finish_reason: 'stop' }] },
  ];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
}

/** What the server sends of thinking, twelve equal calls, one that fails, and the same again with two results. */
export function repeated() {
  const call = (id, place, success = true, found = 'nothing') => [
    { x_toolrack: { type: 'call_started', id, name: 'look', arguments: { place }, dialect: 'native' } },
    { x_toolrack: { type: 'call_finished', id, name: 'look', success, result: success ? found : null, error: success ? null : 'There is no such place; name one from the list', duration_ms: 0 } },
  ];
  const chunks = [
    { choices: [{ delta: { reasoning_content: 'Let me see' } }] },
    ...Array.from({ length: 12 }, (_, index) => call(`call-${index}`, 'here')).flat(),
    ...call('call-12', 'nowhere', false),
    ...call('call-13', 'nowhere'),
    ...call('call-14', 'nowhere', true, 'a cat'),
    { choices: [{ delta: {}, finish_reason: 'length' }] },
  ];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
}

/** Lets the model pause after its first words: what Playwright answers comes at once. How long it was then is `window.paused`. */
export function withPause(page, body, ms) {
  return page.evaluate(([text, pause]) => {
    const real = window.fetch;
    window.fetch = (address, options) => {
      if (!String(address).includes('chat/completions')) return real(address, options);
      window.fetch = real;
      const encoder = new TextEncoder();
      const first = text.indexOf('\n\n') + 2;
      const stream = new ReadableStream({
        async start(controller) {
          controller.enqueue(encoder.encode(text.slice(0, first)));
          const began = performance.now();
          await new Promise((resolve) => { setTimeout(resolve, pause); });
          window.paused = performance.now() - began;
          controller.enqueue(encoder.encode(text.slice(first)));
          controller.close();
        },
      });
      return Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }));
    };
  }, [body, ms]);
}

/** Lets the model's server say this stream up to that event, and the rest with `window.letEnd()`. */
export function heldBefore(page, body, event) {
  return page.evaluate(([text, from]) => {
    const real = window.fetch;
    window.fetch = (address, options) => {
      if (!String(address).includes('chat/completions')) return real(address, options);
      window.fetch = real;
      const encoder = new TextEncoder();
      const at = text.lastIndexOf('data: ', text.indexOf(from));
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue(encoder.encode(text.slice(0, at)));
          window.letEnd = () => {
            controller.enqueue(encoder.encode(text.slice(at)));
            controller.close();
          };
        },
      });
      return Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }));
    };
  }, [body, event]);
}

/** A second of silence. */
export function silence() {
  const wave = Buffer.alloc(44 + 8000);
  wave.write('RIFF', 0); wave.writeUInt32LE(36 + 8000, 4); wave.write('WAVEfmt ', 8);
  wave.writeUInt32LE(16, 16); wave.writeUInt16LE(1, 20); wave.writeUInt16LE(1, 22); wave.writeUInt32LE(8000, 24);
  wave.writeUInt32LE(8000, 28); wave.writeUInt16LE(1, 32); wave.writeUInt16LE(8, 34); wave.write('data', 36); wave.writeUInt32LE(8000, 40);
  return wave.fill(128, 44);
}
