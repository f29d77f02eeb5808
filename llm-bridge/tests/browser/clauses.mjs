// What else a conversation can do: go on, another model, copy, share, personas; and that axe finds nothing in what is opened.

import { sse } from './approvals.mjs';
import { openKept } from './kept.mjs';
import { ANSWERS, NOW, running } from './kept_data.mjs';
import { faults } from './looks.mjs';
import { PICTURE } from './streams.mjs';
import { ask, atRest, check, equal, idle, open, withoutChats } from './support.mjs';

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
    await Promise.all([page.waitForResponse('**/api/chats/chat_1'), page.selectOption('#model', 'gpt-oss:20b')]);
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
    await Promise.all([page.waitForResponse('**/api/chats/chat_1'), page.locator('#settings label:has-text("Persona") select').selectOption('reading')]);
    equal(sent, [{ settings: { persona: 'reading' } }], 'sent');
    await context.close();
  });

  await check('b17 the name that a slow model gives a chat is seen', async () => {
    let [title, lists] = ['What is', 0];
    const [listed] = ANSWERS['/api/chats'].chats;
    const answers = running([], {
      '/api/chats': (route) => {
        lists += 1;
        return route.fulfill({ json: { chats: [{ ...listed, title, titled_by: title === 'A sum' ? 'model' : 'question' }], next: null } });
      },
      '/api/chats/chat_1/turn': (route) => route.fulfill({ contentType: 'text/event-stream', body: sse({ event: 'done', data: ANSWER }) }),
    });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, (one) => one.clock.install({ time: NOW }), answers, null);
    await page.waitForSelector('.answer .text table');
    await idle(page);
    await page.waitForSelector('.chat-title:text-is("What is")');
    await page.clock.runFor(10_000);
    title = 'A sum';
    await page.clock.runFor(10_000);
    await page.waitForSelector('.chat-title:text-is("A sum")');
    const before = lists;
    await page.clock.runFor(60_000);
    equal(lists, before, 'lists once it has a name');
    await context.close();
  });

  await check('b17 thinking is set where the server keeps the chat, and not where nobody would tell the model', async () => {
    for (const [about, fields] of [[{}, 1], [{ '/api/chats': undefined }, 0]]) {
      const { page, context } = await openKept(browser, '', WIDE, undefined, { ...ANSWERS, ...about });
      await page.waitForSelector('#welcome');
      await page.click('#settings-open');
      await page.waitForSelector('#settings .tool-choice');
      equal(await page.locator('#settings label:has-text("Thinking")').count(), fields, 'fields');
      await context.close();
    }
  });

  await found(browser);
  await pictures(browser);
  await sharing(browser);
  await axe(browser);
}

async function found(browser) {
  await check('b17 what a search has found is shown: its message, on whichever branch, at the word', async () => {
    // On the branch that is not the last, and far above its end.
    const messages = [];
    const add = (id, parent, role, text) => messages.push({ ...CHAT.messages[role === 'user' ? 0 : 1], id, parent, parts: said(text) });
    for (let at = 0; at < 300; at += 1) {
      const long = 'A paragraph with **some** words in it, that goes on.\n\n'.repeat(at === 41 ? 60 : 3);
      add(`a${at}`, at === 0 ? null : `a${at - 1}`, at % 2 ? 'assistant' : 'user', at % 2 ? `${long}${at === 41 ? 'Here is a **Walnut** tree.\n\n' : ''}${long}` : `Question ${at}`);
    }
    add('b1', 'a0', 'assistant', 'Another answer.');
    const posts = [];
    const answers = {
      ...ANSWERS,
      '/api/chats': (route) => {
        const words = new URL(route.request().url()).searchParams.get('search');
        const [, other] = ANSWERS['/api/chats'].chats;
        return route.fulfill({ json: words ? { chats: [{ ...other, found: words === 'walnut' ? { message: 'a41', text: '… a Walnut tree. …' } : undefined }], next: null } : ANSWERS['/api/chats'] });
      },
      '/api/chats/chat_2': (route) => {
        if (route.request().method() === 'POST') posts.push(route.request().postDataJSON());
        return route.fulfill({ json: { ...CHAT, id: 'chat_2', messages, leaf: 'b1' } });
      },
    };
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.waitForSelector('.answer .text table');
    const seen = () => page.waitForFunction(() => {
      const word = [...document.querySelectorAll('[data-id="a41"] strong')].find((one) => one.textContent === 'Walnut');
      if (!word) return false;
      const { top, bottom } = word.getBoundingClientRect();
      const scroller = document.getElementById('scroller').getBoundingClientRect();
      return top > scroller.top && bottom < scroller.bottom && CSS.highlights.get('found').size === 1;
    });
    await page.keyboard.press('Control+k');
    await page.waitForSelector('#chats-search:focus');
    await page.keyboard.type('walnut');
    await page.waitForSelector('.chat-found:has-text("Walnut")');
    await page.focus('.chat-row a');
    await page.keyboard.press('Enter');
    await seen();
    await page.waitForTimeout(500);
    await seen();
    equal(await page.evaluate(() => document.activeElement.dataset.id), 'a41', 'focus');
    equal(await page.locator('.question').first().locator('.branches > span').count() + await page.locator('.answer').first().locator('.branches > span').count(), 1, 'branches');
    // Also where the chat is open, and when the tab is looked at again.
    await page.evaluate(() => { document.getElementById('scroller').scrollTop = 0; });
    await page.click('.chat-row a');
    await seen();
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await page.waitForTimeout(300);
    await seen();
    equal(posts, [], 'changes of the chat');
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    equal(await page.evaluate(() => CSS.highlights.get('found').size), 0, 'marks in another chat');
    await context.close();
  });
}

/** A message with two pictures, and the answer of a model that takes none. */
async function pictures(browser) {
  const url = `data:image/png;base64,${PICTURE}`;
  const asked = { ...QUESTION, parts: [...said('What are these?'), { type: 'image', name: 'one.png', url }, { type: 'image', name: 'two.png', url: `${url}#` }] };
  const error = { type: 'pictures_refused', message: 'the model server answered 500: image input is not supported' };
  const refused = { ...CHAT, messages: [asked, { ...ANSWER, status: 'failed', parts: [], error }] };
  const paste = (page) => page.evaluate((data) => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File([Uint8Array.from(atob(data), (one) => one.charCodeAt(0))], 'map.png', { type: 'image/png' }));
    document.getElementById('question').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }, PICTURE);

  await check('b17 it is said that a model sees no pictures, before they are sent', async () => {
    const models = { data: [{ id: 'qwen3:8b', pictures: false }, { id: 'gpt-oss:20b' }] };
    for (const answers of [{ ...ANSWERS, '/v1/models': models }, { ...ANSWERS, '/api/chats/chat_1': refused }]) {
      const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
      await page.waitForSelector('.answer');
      await paste(page);
      await page.waitForSelector('.attached li:has-text("map.png")');
      await page.waitForSelector('.attached .blind:has-text("qwen3:8b sees no pictures")');
      await page.selectOption('#model', 'gpt-oss:20b');
      await page.waitForSelector('.attached .blind', { state: 'detached' });
      await context.close();
    }
  });

  await check('b17 where a model takes no picture it is said so, and it can be asked without', async () => {
    const answer = { ...ANSWER, id: 'm3', parts: said('I cannot see them.') };
    const { sent, answers } = taking(refused, { turn: { message: 'm3', position: 0, here: true }, message: null, answer: { ...answer, status: 'running', parts: [] } }, { event: 'done', data: answer });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.waitForSelector('.error:has-text("The model does not take the picture: the model server answered 500: image input is not supported")');
    await page.click('.without-pictures');
    await page.waitForSelector('.answer .text:has-text("I cannot see them.")');
    equal(sent, [{ regenerate: 'm2', without_pictures: true, model: 'qwen3:8b' }], 'sent');
    await context.close();
  });

  await check('b17 a picture that has not come yet is not that of another message', async () => {
    const messages = ['one', 'two'].flatMap((name) => [
      { ...QUESTION, id: `${name}-q`, parts: [...said(name), { type: 'image', name: `${name}.png`, path: `api/files/${name}/${name}.png` }] },
      { ...ANSWER, id: `${name}-a`, parent: `${name}-q` },
    ]);
    const picture = (route) => route.fulfill({ contentType: 'image/png', body: Buffer.from(PICTURE, 'base64') });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, {
      ...ANSWERS, '/api/chats/chat_1': { ...CHAT, messages, leaf: 'one-a' }, '/api/files/one/one.png': picture, '/api/files/two/two.png': () => {},
    });
    await page.waitForSelector('.asked-files img');
    await page.click('.question .branches button:not(.back)');
    await page.waitForSelector('.asked:text-is("two")');
    equal(await page.locator('.asked-files img').count(), 0, 'pictures');
    await context.close();
  });

  await check('b17 a picture is left out where a message is edited, by keyboard', async () => {
    const { sent, answers } = taking(refused, { turn: { message: 'm3', position: 0, here: true }, message: null, answer: { ...ANSWER, id: 'm3', status: 'running', parts: [] } }, { event: 'done', data: { ...ANSWER, id: 'm3' } });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.hover('.question');
    await page.click('.question .edit');
    equal(await page.locator('.editor img').count(), 2, 'pictures');
    await page.focus('.editor [aria-label="Remove one.png"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.editor [aria-label="Remove one.png"]', { state: 'detached' });
    equal(await page.evaluate(() => document.activeElement.matches('.editor textarea')), true, 'focus');
    await page.keyboard.press('Enter');
    await idle(page);
    equal(sent.map(({ content }) => content), [[{ type: 'text', text: 'What are these?' }, { type: 'image_url', image_url: { url: `${url}#` } }]], 'sent');
    await context.close();
  });
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
      if (await page.isVisible('#chats-toggle') && !(await page.isVisible('.chat-row'))) await page.click('#chats-toggle');
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
  const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true };
  for (const [where, options] of Object.entries({ 'en-GB': { ...WIDE, locale: 'en-GB' }, 'de-AT': { ...WIDE, locale: 'de-AT' }, 'on a phone': PHONE })) {
    for (const [view, show] of Object.entries(views)) {
      await check(`b17 axe finds nothing in ${view}, ${where}`, async () => {
        for (const colorScheme of ['light', 'dark']) {
          const { page, context } = await openKept(browser, '#chat_1', { ...options, colorScheme, reducedMotion: 'reduce' }, undefined, view === 'change' ? runs : done);
          await page.waitForSelector('.answer');
          await show(page);
          await atRest(page);
          equal(await faults(page), [], colorScheme);
          await context.close();
        }
      });
    }
  }
}
