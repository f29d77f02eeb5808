// What else a conversation can do: go on, another model, copy, share, personas; and that axe finds nothing in what is opened.

import { running, sse } from './approvals.mjs';
import { openKept } from './kept.mjs';
import { ANSWERS } from './kept_data.mjs';
import { faults } from './looks.mjs';
import { ask, check, equal, idle, open, withoutChats } from './support.mjs';

const CHAT = ANSWERS['/api/chats/chat_1'];
const [QUESTION, ANSWER] = CHAT.messages;
const WIDE = { viewport: { width: 1280, height: 900 } };
const said = (text) => [{ type: 'text', text }];

/** A server that takes a turn, and says these chunks. */
function taking(chat, about, ...chunks) {
  const sent = [];
  const answers = {
    ...ANSWERS,
    '/api/chats/chat_1': (route) => {
      if (route.request().method() === 'POST') sent.push(route.request().postDataJSON());
      return route.fulfill({ json: chat });
    },
    '/api/chats/chat_1/turn': (route) => {
      if (route.request().method() === 'GET') return route.fulfill({ contentType: 'text/event-stream', body: sse(...chunks) });
      sent.push(route.request().postDataJSON());
      return route.fulfill({ status: 202, json: about });
    },
  };
  return { sent, answers };
}

export async function clauses(browser) {
  await check('b17 an answer that was cut off goes on where it ended', async () => {
    const cut = { ...ANSWER, parts: said('One, two'), finish_reason: 'length' };
    const chat = { ...CHAT, messages: [QUESTION, cut] };
    const { sent, answers } = taking(chat, { turn: { message: 'm2', position: 0, here: true }, message: null, answer: { ...cut, status: 'running' } },
      { choices: [{ delta: { content: ', three.' } }] }, { event: 'done', data: { ...cut, parts: said('One, two, three.'), finish_reason: 'stop' } });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.click('.go-on');
    await page.waitForSelector('.answer .text:has-text("One, two, three.")');
    await idle(page);
    equal([sent.map(({ continue: of }) => of), await page.locator('.answer').count(), await page.locator('.go-on').count()], [['m2'], 1, 0], 'sent, answers, and ways to go on');
    await context.close();
  });

  await check('b17 another model answers beside the first', async () => {
    const answer = { ...ANSWER, id: 'm3', model: 'gpt-oss:20b', parts: said('It is 483.') };
    const { sent, answers } = taking(CHAT, { turn: { message: 'm3', position: 0, here: true }, message: null, answer: { ...answer, status: 'running', parts: [] } }, { event: 'done', data: answer });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.selectOption('.other-model select', 'gpt-oss:20b');
    await page.waitForSelector('.answer .text:has-text("It is 483.")');
    equal(sent, [{ regenerate: 'm2', model: 'gpt-oss:20b' }], 'sent');
    equal([await page.locator('.answer .branches > span').innerText(), (await page.innerText('.answer .facts')).includes('gpt-oss:20b')], ['2 / 2', true], 'shown');
    await context.close();
  });

  await check('b17 an answer is made again, and goes on, by the model that gave it, whichever is chosen for the chat', async () => {
    for (const [button, about] of [['.regenerate', {}], ['.go-on', { finish_reason: 'length' }]]) {
      const chat = { ...CHAT, settings: { ...CHAT.settings, model: 'qwen3:8b' }, messages: [QUESTION, { ...ANSWER, model: 'gpt-oss:20b', ...about }] };
      const { sent, answers } = taking(chat, { turn: { message: 'm2', position: 0, here: true }, message: null, answer: { ...ANSWER, status: 'running' } }, { event: 'done', data: ANSWER });
      const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
      await page.waitForSelector('.answer .text table');
      equal([await page.inputValue('#model'), await page.locator('.other-model option').allInnerTexts()], ['qwen3:8b', ['Other model…', 'qwen3:8b']], 'chosen, and others');
      await page.click(`.answer ${button}`);
      await idle(page);
      equal(sent.map(({ model }) => model), ['gpt-oss:20b'], button);
      await context.close();
    }
  });

  await check('b17 each chat keeps its model, and a new one takes what was chosen for a new one', async () => {
    const sent = [];
    const { answers } = taking(CHAT, {});
    const noted = (address, json) => async (route) => {
      if (route.request().method() !== 'POST') return route.fulfill({ json: ANSWERS[address] ?? json });
      sent.push([address, route.request().postDataJSON()]);
      return address.endsWith('/turn') ? route.fulfill({ status: 503, json: { error: { message: 'not now' } } }) : route.fulfill({ json });
    };
    const other = { ...CHAT, id: 'chat_2', title: 'Trains to Lyon', settings: { ...CHAT.settings, model: 'gpt-oss:20b' } };
    const begun = { ...other, id: 'chat_3', title: '', messages: [], leaf: null };
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, {
      ...answers, '/api/chats': noted('/api/chats', begun), '/api/chats/chat_1': noted('/api/chats/chat_1', CHAT), '/api/chats/chat_2': other, '/api/chats/chat_3/turn': noted('/api/chats/chat_3/turn', {}),
    });
    await page.waitForSelector('.answer .text table');
    await page.selectOption('#model', 'gpt-oss:20b');
    await page.waitForTimeout(200);
    equal(sent.splice(0), [['/api/chats/chat_1', { settings: { model: 'gpt-oss:20b' } }]], 'kept for the chat');
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    equal(await page.inputValue('#model'), 'qwen3:8b', 'model of a new chat');
    await page.click('.chat-row a:has-text("Trains to Lyon")');
    await page.waitForSelector('.answer .text table');
    equal(await page.inputValue('#model'), 'gpt-oss:20b', 'model of the chat that is opened');
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    await page.selectOption('#model', 'gpt-oss:20b');
    await ask(page, 'Hello?');
    await page.waitForSelector('.answer .error:has-text("not now")');
    equal(sent.map(([address, { settings, model }]) => [address, settings?.model ?? model]), [['/api/chats', 'gpt-oss:20b'], ['/api/chats/chat_3/turn', 'gpt-oss:20b']], 'begun');
    await page.reload();
    await page.waitForSelector('#welcome');
    equal(await page.inputValue('#model'), 'gpt-oss:20b', 'model of the next new chat');
    await context.close();
  });

  await check('b17 messages are copied as they were written', async () => {
    const { page, context } = await openKept(browser, '#chat_1', { ...WIDE, permissions: ['clipboard-read', 'clipboard-write'] });
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await page.hover('.question');
    await page.click('.question .copy');
    await page.waitForSelector('.question .copy:has-text("Copied")');
    equal(await copied(), QUESTION.parts[0].text, 'question');
    await page.click('.answer .foot .copy');
    await page.waitForSelector('.answer .foot .copy:has-text("Copied")');
    equal(await copied(), ANSWER.parts[2].text, 'answer');
    await context.close();
  });

  await check('b17 a persona is chosen for a chat', async () => {
    const { sent, answers } = taking(CHAT, {});
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.click('#settings-open');
    await page.locator('#settings label:has-text("Persona") select').selectOption('reading');
    await page.waitForTimeout(200);
    equal(sent, [{ settings: { persona: 'reading' } }], 'sent');
    await context.close();
  });

  await sharing(browser);
  await axe(browser);
}

async function sharing(browser) {
  const { page, context } = await open(browser, WIDE, withoutChats);
  await check('b17 what does not go into a chat is shared only when that is asked for', async () => {
    await page.evaluate(() => {
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File(['%PDF'], 'b.pdf', { type: 'application/pdf' }));
      document.getElementById('question').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    });
    await page.waitForSelector('.attached .part-error:has-text("b.pdf")');
    equal(await page.locator('.transfer').count(), 0, 'shared before');
    await page.click('.share');
    await page.waitForSelector('#documents .transfer:has-text("b.pdf")');
    await page.waitForSelector('.attached .part-error', { state: 'detached' });
    await page.click('#documents-close');
  });

  await check('b17 what is dropped for everybody is shared after a yes, and not after a no', async () => {
    const posts = [];
    page.on('request', (request) => { if (request.method() === 'POST' && request.url().includes('/api/documents')) posts.push(request.url()); });
    for (const [button, shared] of [['#documents-offer button:has-text("Cancel")', 0], ['#documents-share', 1]]) {
      await page.evaluate(() => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(['# Rooibos\n\nRooibos is red.\n'], 'rooibos.md', { type: '' }));
        document.getElementById('drop-documents').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      });
      await page.waitForSelector('#documents-offer:has-text("Share 1 file with every user of this server?"):has-text("rooibos.md")');
      equal(posts.length, 0, 'sent before the answer');
      await page.click(button);
      await page.waitForSelector('#documents-offer', { state: 'detached' });
      if (shared) await page.waitForSelector('#documents-status:text-is("1 added.")');
      equal(posts.length, shared, 'sent');
    }
    await page.click('[aria-label="Remove rooibos.md"]');
    await page.click('.removal .danger');
    await page.waitForSelector('[aria-label="Remove rooibos.md"]', { state: 'detached' });
  });
  await context.close();
}

const PASSAGES = [{ source: 'notes/tea.md', section: 'Tea', place: 'line 5', text: 'Green tea is steeped at 75 degrees.' }];

async function axe(browser) {
  const views = {
    inbox: async (page) => {
      await page.click('#inbox-open');
      await page.click('#inbox .remember > summary');
    },
    change: async (page) => {
      await page.click('.call .change-first');
      await page.click('.call .with-word');
    },
    passage: async (page) => {
      await page.click('.sources summary');
      await page.click('.source');
      await page.waitForSelector('#passage blockquote');
    },
    documents: async (page) => {
      await page.click('#tools-toggle');
      await page.click('#documents-open');
      await page.waitForSelector('#documents .document');
    },
    editor: async (page) => {
      await page.hover('.question');
      await page.click('.question .edit');
      await page.waitForSelector('.editor textarea');
    },
    menu: async (page) => {
      await page.click('.chat-row.shown .chat-more');
      await page.waitForSelector('.menu');
    },
    settings: async (page) => { await page.click('#settings-open'); },
  };
  const found = { ...ANSWER.parts[1], id: 'c7', name: 'retrieve_documents', result: { passages: PASSAGES } };
  const asks = { ...ANSWER.parts[1], id: 'c8', name: 'drop_file', state: 'running', arguments: { path: 'notes/a.md', deep: true }, result: null, approval: 'a1', answer_by: '2026-03-02T09:34:30Z' };
  const documents = { documents: [{ path: 'uploads/ada/tea.md', title: 'Tea', kind: 'markdown', bytes: 1200, passages: 3, added: '2026-03-01T12:00:00Z', removable: true }], total: 1, may_add: true, extensions: ['md'], max_bytes: 1 };
  const done = { ...ANSWERS, '/api/documents': documents, '/api/chats/chat_1': { ...CHAT, messages: [QUESTION, { ...ANSWER, parts: [found, ...said('75 degrees (notes/tea.md, line 5).')] }] } };
  const runs = running([asks], { '/api/approvals': ANSWERS['/api/approvals'] });
  for (const locale of ['en-GB', 'de-AT']) {
    for (const [view, show] of Object.entries(views)) {
      await check(`b17 axe finds nothing in ${view}, ${locale}`, async () => {
        for (const colorScheme of ['light', 'dark']) {
          const { page, context } = await openKept(browser, '#chat_1', { ...WIDE, locale, colorScheme, reducedMotion: 'reduce' }, undefined, view === 'change' ? runs : done);
          await page.waitForSelector('.answer');
          await show(page);
          await page.waitForTimeout(200);
          equal(await faults(page), [], colorScheme);
          await context.close();
        }
      });
    }
  }
}
