// Whatever comes first: what is sent is never lost or mixed with another chat, and what is open stays open.

import { sse } from './approvals.mjs';
import { openKept } from './kept.mjs';
import { ANSWERS, running } from './kept_data.mjs';
import { ERASE, ask, check, equal, idle, open, withoutChats } from './support.mjs';

const CHAT = ANSWERS['/api/chats/chat_1'];
const WIDE = { viewport: { width: 1280, height: 900 } };

/** Holds requests back until they are let go. */
async function held(page, pattern, method) {
  let go = () => {};
  const gate = new Promise((resolve) => { go = resolve; });
  let came = () => {};
  const asked = new Promise((resolve) => { came = resolve; });
  const waiting = [];
  await page.route(pattern, (route) => {
    if (route.request().method() !== method) return route.fallback();
    came();
    waiting.push(gate.then(() => route.continue()));
    return waiting.at(-1);
  });
  return {
    asked,
    async letGo() {
      go();
      await Promise.all(waiting);
      await page.unroute(pattern);
    },
  };
}

const asked = (page) => page.locator('.asked').allInnerTexts();

export async function races(browser) {
  await whileChatsChange(browser);
  await whileTheServerFails(browser);
}

async function whileChatsChange(browser) {
  const { page, context } = await open(browser, WIDE);
  const fresh = async () => {
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
  };
  const row = (title) => page.locator('.chat-row a', { hasText: title }).first();
  const rename = async (title) => {
    await page.hover('.chat-row.shown');
    await page.click('.chat-row.shown .chat-more');
    await page.click('.menu button:has-text("Rename")');
    await page.fill('.chat-row input', title);
    await page.keyboard.press('Enter');
    await row(title).waitFor();
  };
  for (const [title, question] of [['First', 'What is 1 + 1?'], ['Second', 'What is 2 + 2?']]) {
    await fresh();
    await ask(page, question);
    await page.waitForSelector('.answer .call[data-state="ok"]');
    await idle(page);
    await rename(title);
  }

  await check('b17 a chat that is opened while a new one begins stays itself, and the new one gets its message', async () => {
    await fresh();
    const creation = await held(page, /\/api\/chats$/, 'POST');
    await ask(page, 'What is 3 + 3? Hazel');
    await creation.asked;
    await row('First').click();
    await page.waitForSelector('.asked:text-is("What is 1 + 1?")');
    const address = page.url();
    const before = await page.locator('.chat-row').count();
    const begun = page.waitForResponse((response) => response.url().endsWith('/turn') && response.request().method() === 'POST');
    await creation.letGo();
    await begun;
    await page.waitForFunction((count) => document.querySelectorAll('.chat-row').length > count, before);
    await page.waitForTimeout(300);
    equal([await asked(page), page.url(), await page.locator('#stop').isVisible()], [['What is 1 + 1?'], address, false], 'the chat that is shown');
    await row('Hazel').click();
    await page.waitForSelector('.asked:text-is("What is 3 + 3? Hazel")');
    await page.waitForSelector('.answer .call[data-state="ok"]');
    await idle(page);
    await rename('Hazel');
  });

  await check('b17 who writes elsewhere while a new chat begins goes on there', async () => {
    await fresh();
    const creation = await held(page, /\/api\/chats$/, 'POST');
    await ask(page, 'What is 8 + 8?');
    await creation.asked;
    await page.focus('#chats-search');
    await page.keyboard.type('ha');
    await creation.letGo();
    await page.waitForSelector('.answer .call[data-state="ok"]');
    await idle(page);
    await page.keyboard.type('zel');
    equal([await page.inputValue('#chats-search'), await page.inputValue('#question')], ['hazel', ''], 'what is written');
    await page.fill('#chats-search', '');
    await row('Second').waitFor();
  });

  await check('b17 of two chats the one that was opened last is shown, whichever comes last', async () => {
    await row('Hazel').click();
    await page.waitForSelector('.asked:has-text("Hazel")');
    const id = await row('First').getAttribute('href').then((href) => href.slice(1));
    const first = await held(page, new RegExp(`/api/chats/${id}$`), 'GET');
    await row('First').click();
    await first.asked;
    await row('Second').click();
    await page.waitForSelector('.asked:text-is("What is 2 + 2?")');
    await first.letGo();
    await page.waitForTimeout(500);
    equal([await asked(page), await row('Second').getAttribute('aria-current')], [['What is 2 + 2?'], 'page'], 'shown');
  });

  await check('b17 Stop holds before the server has begun, in a chat and in a new one', async () => {
    for (const [prepare, pattern] of [[async () => {}, /\/turn$/], [fresh, /\/api\/chats$/]]) {
      await prepare();
      const beginning = await held(page, pattern, 'POST');
      await ask(page, ERASE);
      await beginning.asked;
      await page.click('#stop');
      await beginning.letGo();
      await page.waitForSelector('.answer:last-child .notice:text-is("Stopped.")');
      await idle(page);
    }
  });

  await check('b17 while an answer is made, other versions can be read, it can be stopped, and nothing that is written is lost', async () => {
    await row('Second').click();
    await page.waitForSelector('.asked:text-is("What is 2 + 2?")');
    await page.hover('.question');
    await page.click('.question .edit');
    await page.fill('.editor textarea', ERASE);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.answer .call-ask');
    await page.click('.question .branches .back');
    await page.waitForSelector('.asked:text-is("What is 2 + 2?")');
    equal([await page.locator('#stop').isVisible(), await page.locator('#send').isVisible()], [true, false], 'Stop and Send');
    await page.fill('#question', 'Not to be lost');
    await page.press('#question', 'Enter');
    await page.waitForSelector('#queue li:has-text("Not to be lost")');
    equal(await page.inputValue('#question'), '', 'what is written');
    await page.click('#stop');
    await idle(page);
    await page.waitForSelector('#queue', { state: 'detached' });
    equal([await page.inputValue('#question'), await page.locator('.asked:text-is("Not to be lost")').count()], ['Not to be lost', 0], 'what is written, and sent');
    await page.fill('#question', '');
  });

  await check('b17 what is sent while an answer is made is sent when that is complete, also after a reload, and can be taken back', async () => {
    await fresh();
    await ask(page, ERASE);
    await page.waitForSelector('.answer:last-child .call-ask');
    await ask(page, 'What is 5 * 5?');
    await ask(page, 'What is 6 * 6?');
    await ask(page, 'What is 7 * 7?');
    const queued = () => page.locator('#queue .part-name').allInnerTexts();
    equal(await queued(), ['What is 5 * 5?', 'What is 6 * 6?', 'What is 7 * 7?'], 'waiting');
    await page.reload();
    await page.waitForSelector('.answer:last-child .call-ask');
    await page.waitForSelector('#queue li:nth-child(3)');
    await page.fill('#question', 'and more');
    await page.focus('#queue [aria-label="Do not send “What is 6 * 6?”"]');
    await page.keyboard.press('Enter');
    equal([await queued(), await page.inputValue('#question'), await page.evaluate(() => document.activeElement.id)], [['What is 5 * 5?', 'What is 7 * 7?'], 'What is 6 * 6?\n\nand more', 'question'], 'taken back');
    await page.click('.answer:last-child .call-ask .refuse');
    await page.waitForSelector('.asked:text-is("What is 5 * 5?")');
    await page.waitForSelector('.asked:text-is("What is 7 * 7?")');
    await page.waitForSelector('.answer:last-child .text:has-text("49")');
    await idle(page);
    equal([await asked(page), await page.locator('#queue').count()], [[ERASE, 'What is 5 * 5?', 'What is 7 * 7?'], 0], 'messages');
    await page.reload();
    await page.waitForSelector('.answer:last-child .text:has-text("49")');
    equal(await asked(page), [ERASE, 'What is 5 * 5?', 'What is 7 * 7?'], 'messages that are kept');
    equal(await page.inputValue('#question'), 'What is 6 * 6?\n\nand more', 'what is written');
    await page.fill('#question', '');
  });

  await check('b17 a message waits also where the tab keeps the chat', async () => {
    const { page: other, context: alone } = await open(browser, WIDE, withoutChats);
    await ask(other, ERASE);
    await other.waitForSelector('.answer:last-child .call-ask');
    await ask(other, 'What is 5 * 5?');
    await other.waitForSelector('#queue li');
    await other.click('.answer:last-child .call-ask .refuse');
    await other.waitForSelector('.answer:last-child .text:has-text("25")');
    await idle(other);
    equal(await asked(other), [ERASE, 'What is 5 * 5?'], 'messages');
    await alone.close();
  });

  await check('b17 files come by the button and by drop, many at once, and wait for their own chat', async () => {
    await row('First').click();
    await page.waitForSelector('.asked:text-is("What is 1 + 1?")');
    const picker = page.waitForEvent('filechooser');
    await page.click('#attach');
    await (await picker).setFiles({ name: 'a.py', mimeType: 'text/x-python', buffer: Buffer.from('a = 1\n') });
    await page.waitForSelector('.attached li:has-text("a.py")');
    await page.evaluate(() => {
      for (const name of ['b.py', 'c.py']) {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([`${name} = 1\n`], name, { type: '' }));
        document.getElementById('drop-chat').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      }
    });
    const names = () => page.locator('.attached .part-name').allInnerTexts().then((all) => all.sort());
    await page.waitForSelector('.attached li:nth-child(3)');
    equal(await names(), ['a.py', 'b.py', 'c.py'], 'attached');
    await fresh();
    equal(await names(), [], 'in another chat');
    await ask(page, 'What is 4 + 4?');
    await page.waitForSelector('.asked:text-is("What is 4 + 4?")');
    await idle(page);
    await row('First').click();
    await page.waitForSelector('.asked:text-is("What is 1 + 1?")');
    equal(await names(), ['a.py', 'b.py', 'c.py'], 'in its own');
    const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/turn'));
    await ask(page, 'What is 5 + 5?');
    const { content } = (await sent).postDataJSON();
    for (const text of ['a = 1', 'b.py = 1', 'c.py = 1']) if (!content.includes(text)) throw new Error(`no ${text} in ${content}`);
    equal(await names(), [], 'attached when it is sent');
    // Whatever the model makes of the files.
    await Promise.race([idle(page), page.waitForSelector('.answer:last-child .call-ask')]);
    if (await page.locator('#stop').isVisible()) await page.click('#stop');
    await idle(page);
  });

  await check('b17 a message that could not be sent is deleted, and the next one goes behind the last that the server has', async () => {
    await page.route('**/turn', (route) => (route.request().method() === 'POST' ? route.fulfill({ status: 503, json: { error: { message: 'not now' } } }) : route.fallback()));
    await ask(page, 'Lost?');
    await page.waitForSelector('.answer:last-child .error:has-text("not now")');
    await page.unroute('**/turn');
    await ask(page, 'What is 6 + 6?');
    await page.waitForSelector('.asked:text-is("What is 6 + 6?")');
    await page.waitForSelector('.answer:last-child .call[data-state="ok"]');
    await idle(page);
    await page.locator('.question .branches .back').last().click();
    await page.waitForSelector('.asked:text-is("Lost?")');
    await page.locator('.question:has-text("Lost?")').hover();
    await page.locator('.question:has-text("Lost?") [title^="Delete this message"]').click();
    await page.locator('.question:has-text("Lost?") .sure-yes').click();
    await page.waitForSelector('.asked:text-is("Lost?")', { state: 'detached' });
    await page.waitForSelector('.asked:text-is("What is 6 + 6?")');
  });

  await check('b17 the focus goes back from the menu of a chat, a title is kept when one clicks elsewhere, and Escape keeps the old one', async () => {
    const more = page.locator('.chat-row.shown .chat-more');
    const back = async (what) => equal(await page.evaluate(() => document.activeElement.matches('.chat-row.shown .chat-more')), true, `focus after ${what}`);
    const choose = async (word) => {
      await more.focus();
      await page.keyboard.press('Enter');
      await page.locator(`.menu button:has-text("${word}")`).focus();
      if (word !== 'Pin') await page.keyboard.press('Enter');
    };
    await choose('Pin');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.menu', { state: 'detached' });
    await back('Escape in the menu');
    await choose('Delete');
    await page.waitForSelector('.chat-delete');
    equal(await page.evaluate(() => document.activeElement.textContent), 'Keep', 'focus');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.chat-delete', { state: 'detached' });
    await back('Keep');
    await choose('Rename');
    await page.fill('.chat-row input', 'Nothing');
    await page.keyboard.press('Escape');
    await back('Escape in the title');
    await choose('Rename');
    await page.fill('.chat-row input', 'Fourth');
    await page.keyboard.press('Enter');
    await back('a new title');
    await row('Fourth').waitFor();
    equal(await page.locator('.chat-title:text-is("Nothing")').count(), 0, 'titles that were given up');
    await choose('Rename');
    await page.fill('.chat-row input', 'Third');
    await page.click('#question');
    await row('Third').waitFor();
    equal(await page.evaluate(() => document.activeElement.id), 'question', 'focus where one has clicked');
  });

  await check('b17 numbers of any step are taken, and a wrong one is named', async () => {
    await page.click('#settings-open');
    const [temperature, share] = [page.locator('#settings input[max="2"]'), page.locator('#settings input[max="1"]')];
    for (const [field, value, name] of [[temperature, '0.75', 'temperature'], [share, '0.33', 'top_p']]) {
      const sent = page.waitForRequest((request) => request.method() === 'POST' && /\/api\/chats\/[^/]+$/.test(request.url()));
      await field.fill(value);
      await field.press('Tab');
      equal((await sent).postDataJSON(), { settings: { [name]: Number(value) } }, 'sent');
    }
    await temperature.fill('3');
    await temperature.press('Tab');
    await page.waitForSelector('#settings .ask-fault');
    equal(await temperature.getAttribute('aria-invalid'), 'true', 'named as wrong');
    await temperature.fill('1');
    await temperature.press('Tab');
    await page.waitForSelector('#settings .ask-fault', { state: 'detached' });
    const tokens = page.locator('#settings input[max="1000000"]');
    await tokens.fill('0');
    await tokens.press('Tab');
    await page.waitForSelector('#settings .ask-fault');
    await page.keyboard.press('Escape');
  });

  await check('b17 however many files wait to be sent, the field is there, and a long text finds what it can', async () => {
    const words = 'one two three four five six seven eight nine ten';
    const [searched] = await Promise.all([page.waitForRequest((request) => request.url().includes('search=')), page.fill('#chats-search', words)]);
    equal(new URL(searched.url()).searchParams.get('search').split(' ').length, 8, 'words that are searched');
    await page.waitForSelector('#chats .empty');
    equal(await page.locator('#failure').count(), 0, 'failures');
    await page.setViewportSize({ width: 390, height: 700 });
    await page.setInputFiles('#composer input[type=file]', Array.from({ length: 100 }, (_, at) => ({ name: `${at}.txt`, mimeType: 'text/plain', buffer: Buffer.from(`${at}`) })));
    await page.waitForSelector('.attached li:nth-child(100)');
    const { y, height } = await page.locator('#question').boundingBox();
    equal(y > 0 && y + height <= 700, true, 'field in the window');
  });
  await context.close();
}

async function whileTheServerFails(browser) {
  await check('b17 a turn that the server does not know any more ends, and the next message is sent', async () => {
    let sent = null;
    const answers = running([], {
      '/api/chats/chat_1/turn': (route) => {
        if (route.request().method() === 'GET') return route.fulfill({ status: 404, json: { error: { message: 'there is no such chat', type: 'chat_not_found' } } });
        sent = route.request().postDataJSON();
        return route.fulfill({ status: 409, json: { error: { message: 'sent' } } });
      },
    });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.waitForSelector('.answer .error:has-text("there is no such chat")');
    await ask(page, 'And now?');
    await page.waitForSelector('.answer:last-child .error:has-text("sent")');
    equal(sent.content, 'And now?', 'message');
    await context.close();
  });

  await check('b17 while a turn cannot be followed it is said why, until it can', async () => {
    let ill = true;
    const answers = running([], {
      '/api/chats/chat_1/turn': (route) => (ill ? route.fulfill({ status: 503, json: { error: { message: 'the store is away' } } })
        : route.fulfill({ contentType: 'text/event-stream', body: sse({ choices: [{ delta: { content: 'Here again.' } }] }, { event: 'done', data: { ...CHAT.messages[1], parts: [{ type: 'text', text: 'Here again.' }] } }) })),
    });
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers, null);
    await page.waitForSelector('#banner:has-text("the store is away")');
    ill = false;
    await page.waitForSelector('.answer .text:has-text("Here again.")');
    await page.waitForSelector('#banner:has-text("the store is away")', { state: 'detached' });
    await idle(page);
    await context.close();
  });

  await check('b17 what is being edited stays while another device changes the chat, and that is seen', async () => {
    let reads = 0;
    const changed = { ...CHAT, messages: [CHAT.messages[0], { ...CHAT.messages[1], parts: [{ type: 'text', text: 'Another answer.' }] }] };
    const answers = { ...ANSWERS, '/api/chats/chat_1': (route) => route.fulfill({ json: (reads += 1) === 1 ? CHAT : changed }) };
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    await page.waitForSelector('.answer .text table');
    await page.hover('.question');
    await page.click('.question .edit');
    await page.fill('.editor textarea', 'What is (17 + 5) * 23?');
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await page.waitForSelector('.answer .text:has-text("Another answer.")');
    equal(await page.inputValue('.editor textarea'), 'What is (17 + 5) * 23?', 'what is edited');
    await context.close();
  });

  await check('b17 pages of the list stay when it is read again, and one that fails says so', async () => {
    let ill = false;
    const [one, other] = ANSWERS['/api/chats'].chats;
    const answers = {
      ...ANSWERS,
      '/api/chats': (route) => {
        const after = new URL(route.request().url()).searchParams.get('after');
        if (after && ill) return route.fulfill({ status: 503, json: { error: { message: 'the list is away' } } });
        return route.fulfill({ json: after ? { chats: [other], next: null } : { chats: [one], next: 'more' } });
      },
    };
    const { page, context } = await openKept(browser, '#chat_1', WIDE, undefined, answers);
    ill = true;
    await page.click('.more-chats');
    await page.waitForSelector('#failure:has-text("the list is away")');
    ill = false;
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await page.waitForSelector('.chat-row >> nth=1');
    const again = page.waitForResponse((response) => response.url().includes('after=more'));
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await again;
    await page.waitForTimeout(200);
    equal(await page.locator('.chat-row').count(), 2, 'chats');
    await context.close();
  });
}
