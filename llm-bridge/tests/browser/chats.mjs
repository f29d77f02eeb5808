// Chats that the server keeps: listed, searched, renamed, pinned, exported, deleted; branches; turns that go on without the page.

import { readFileSync } from 'node:fs';

import { ERASE, QUESTION, URL_UNDER_TEST, answerText, areKept, ask, atRest, check, equal, idle, open, shot } from './support.mjs';

const rows = (page) => page.locator('.chat-row .chat-title').allInnerTexts();
const branches = (page) => page.locator('.branches > span').allInnerTexts();

/** Opens the menu of a chat, and chooses. */
async function choose(page, index, word) {
  await page.locator('.chat-row').nth(index).hover();
  await page.locator('.chat-more').nth(index).click();
  await page.click(`.menu button:has-text("${word}")`);
}

export async function chats(browser) {
  if (!(await areKept())) return;
  const { page, complaints, context } = await open(browser, { viewport: { width: 1280, height: 860 } });

  await check('b17 a chat is kept by the server, and is there in another browser', async () => {
    await ask(page, QUESTION);
    await page.waitForSelector('.call[data-name="calculate"][data-state="ok"]');
    await idle(page);
    await page.waitForSelector('.chat-row.shown');
    const other = await open(browser, { viewport: { width: 1280, height: 860 } });
    await other.page.click('.chat-row a');
    await other.page.waitForSelector('.answer .call[data-name="calculate"][data-state="ok"]');
    equal(await other.page.locator('.asked').innerText(), QUESTION, 'question');
    if (!(await answerText(other.page)).includes('483')) throw new Error('the answer is not there');
    await other.context.close();
    await page.reload();
    await page.waitForSelector('.answer .call[data-state="ok"]');
    equal(await page.locator('.chat-row.shown').count(), 1, 'chats shown after a reload');
  });

  await check('b17 a message is edited with the keyboard, and both branches stay', async () => {
    await page.focus('#question');
    await page.keyboard.press('ArrowUp');
    await page.waitForSelector('.editor textarea:focus');
    equal(await page.inputValue('.editor textarea'), QUESTION, 'text to edit');
    await page.fill('.editor textarea', 'What is 2 * 21?');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.asked:text-is("What is 2 * 21?")');
    await idle(page);
    if (!(await answerText(page)).includes('42')) throw new Error(await answerText(page));
    equal(await branches(page), ['2 / 2'], 'branches');
    await page.evaluate((question) => {
      window.mixed = [];
      const look = () => {
        const [asked, answer] = ['.asked', '.answer .text'].map((place) => [...document.querySelectorAll(place)].map((one) => one.innerText).join());
        if (asked === question && !answer.includes('483')) window.mixed.push(answer);
        requestAnimationFrame(look);
      };
      look();
    }, QUESTION);
    await page.click('.branches .back');
    await page.waitForSelector(`.asked:text-is("${QUESTION}")`);
    if (!(await answerText(page)).includes('483')) throw new Error(await answerText(page));
    equal(await page.evaluate(() => window.mixed), [], 'answers of the other branch on the way');
    await page.reload();
    await page.waitForSelector(`.asked:text-is("${QUESTION}")`);
    equal(await branches(page), ['1 / 2'], 'branches after a reload');
  });

  await check('b17 another answer stands beside the first, and a message is deleted with what follows', async () => {
    await page.click('.answer:last-child .regenerate');
    await page.waitForSelector('.answer .branches:has-text("2 / 2")');
    await idle(page);
    await page.waitForSelector('.answer:last-child .call[data-state="ok"]');
    await shot(page, 'chats-branches');
    await page.locator('.question').first().hover();
    await page.click('.question [title^="Delete this message"]');
    await page.waitForSelector('.question .sure button:focus');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.question .sure', { state: 'detached' });
    await page.waitForSelector(`.asked:text-is("${QUESTION}")`);
    await page.click('.question [title^="Delete this message"]');
    await page.click('.question .sure-yes');
    await page.waitForSelector('.asked:text-is("What is 2 * 21?")');
    equal(await branches(page), [], 'branches');
  });

  await check('b17 a turn goes on when the page is closed, and is joined again', async () => {
    await ask(page, ERASE);
    await page.waitForSelector('.answer:last-child .call-ask');
    await page.waitForFunction(() => document.title.startsWith('(1)'));
    const address = page.url();
    await page.goto('about:blank');
    await page.goto(address);
    await page.waitForSelector('.answer:last-child .call-ask .allow');
    if (!/\d+ (?:s|min) left/.test(await page.innerText('.answer:last-child .time-left'))) throw new Error('no time is shown');
    await page.click('#inbox-open');
    await page.waitForSelector('#inbox .inbox-item:has-text("erase_note")');
    await shot(page, 'chats-inbox');
    await page.keyboard.press('Escape');
    await page.click('.answer:last-child .with-word');
    await page.fill('.answer:last-child .refusal input', 'It is still needed');
    await page.press('.answer:last-child .refusal input', 'Enter');
    await page.waitForSelector('.answer:last-child .call[data-name="erase_note"][data-state="failed"]');
    await idle(page);
    await page.waitForFunction(() => !document.title.startsWith('('));
  });

  await check('b17 a call is changed in the inbox, and both its arguments are kept with the chat', async () => {
    await ask(page, ERASE);
    await page.waitForSelector('.answer:last-child .call-ask');
    await page.click('#inbox-open');
    await page.click('#inbox .change-first');
    await page.fill('#inbox .change-form [name=title]', 'cream');
    await shot(page, 'chats-inbox-change');
    await page.click('#inbox .allow-changed');
    await page.waitForSelector('.answer:last-child .call[data-name="erase_note"][data-state="ok"]');
    await page.keyboard.press('Escape');
    await idle(page);
    await page.reload();
    const card = page.locator('.answer:last-child .call[data-name="erase_note"]');
    await card.locator('summary').click();
    const shown = await card.locator('.call-body').innerText();
    for (const word of ['as a person has changed them', 'cream', 'Asked for by the model', 'milk']) {
      if (!shown.includes(word)) throw new Error(`no ${word} in: ${shown}`);
    }
  });

  await check('b17 a call is allowed for a folder by keyboard alone, runs without a question then, and is asked about again once that is revoked', async () => {
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    const drop = (path) => ask(page, `Drop the file "${path}".`);
    const card = page.locator('.answer:last-child .call-ask');
    await drop('notes/old/a.md');
    await card.locator('.remember summary').focus();
    await page.keyboard.press('Enter');
    equal(await card.locator('.remember button:visible').count(), 3, 'choices');
    if (!(await card.locator('.remember-folder').innerText()).includes('notes/old')) throw new Error('the folder is not named');
    await shot(page, 'chats-remember');
    await card.locator('.remember-folder').focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.answer:last-child .call[data-name="drop_file"][data-state="ok"]');
    await idle(page);
    await drop('notes/old/b.md');
    await page.waitForSelector('.answer:last-child .call[data-state="ok"]:has-text("notes/old/b.md")');
    await idle(page);
    await drop('notes/old/../b.md');
    await card.locator('.refuse').click();
    await idle(page);
    await page.click('#settings-open');
    await page.waitForSelector('.rule[data-scope="folder"]:has-text("notes/old")');
    await shot(page, 'chats-rules');
    await page.focus('.rule .revoke');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.rules', { state: 'detached' });
    await page.keyboard.press('Escape');
    await drop('notes/old/c.md');
    await card.locator('.refuse').click();
    await idle(page);
  });

  await check('b17 what is allowed in a chat runs there without a question, and is gone with the chat', async () => {
    await ask(page, 'Drop the file "one.md".');
    await page.locator('.answer:last-child .remember summary').click();
    equal(await page.locator('.answer:last-child .remember button:visible').count(), 2, 'choices without a folder');
    await page.click('.answer:last-child .remember-chat');
    await page.waitForSelector('.answer:last-child .call[data-name="drop_file"][data-state="ok"]');
    await idle(page);
    await ask(page, 'Drop the file "two.md".');
    await page.waitForSelector('.answer:last-child .call[data-state="ok"]:has-text("two.md")');
    await idle(page);
    await page.click('#settings-open');
    await page.waitForSelector('.rule[data-scope="chat"] a:has-text("Drop the file")');
    await page.keyboard.press('Escape');
    await choose(page, 0, 'Delete');
    await page.click('.chat-delete .danger');
    await page.waitForSelector('#welcome');
    await page.click('#settings-open');
    await page.waitForSelector('#settings-rules + .rules-list .empty');
    await page.keyboard.press('Escape');
  });

  await check('b17 a running turn is stopped, and is kept as far as it came', async () => {
    await ask(page, ERASE);
    await page.waitForSelector('.answer:last-child .call-ask');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.answer:last-child .notice:text-is("Stopped.")');
    await idle(page);
    await page.reload();
    await page.waitForSelector('.answer:last-child .call[data-name="erase_note"]:is([data-state="cancelled"], [data-state="failed"])');
  });

  await check('b17 what is not sent is kept for its chat', async () => {
    await page.fill('#question', 'A draft');
    await page.keyboard.press('Control+Shift+O');
    await page.waitForSelector('#welcome');
    equal([await page.inputValue('#question'), await page.evaluate(() => document.activeElement.id)], ['', 'question'], 'new chat');
    await page.goBack();
    await page.waitForSelector('.answer:last-child .notice:text-is("Stopped.")');
    equal(await page.inputValue('#question'), 'A draft', 'draft');
    await page.fill('#question', '');
  });

  await check('b17 chats are found by words, by keyboard', async () => {
    await page.keyboard.press('Control+Shift+O');
    await page.waitForSelector('#welcome');
    await ask(page, 'What is 7 * 6? Walnut');
    await page.waitForSelector('.answer .call[data-state="ok"]');
    await idle(page);
    const all = (await rows(page)).length;
    await page.keyboard.press('Control+k');
    await page.waitForSelector('#chats-search:focus');
    await page.keyboard.type('walnut');
    // Where the keys are slow, the first letters are searched for first.
    await page.waitForFunction(() => document.querySelectorAll('.chat-row').length === 1);
    await page.fill('#chats-search', 'no such word anywhere');
    await page.waitForSelector('#chats .empty');
    await page.fill('#chats-search', '');
    await page.waitForFunction((count) => document.querySelectorAll('.chat-row').length === count, all);
  });

  await check('b17 a chat is renamed, pinned, exported and deleted for good', async () => {
    await choose(page, 0, 'Rename');
    await page.fill('.chat-row input', 'Nuts');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.chat-title:text-is("Nuts")');
    const at = (await rows(page)).length - 1;
    await choose(page, at, 'Pin');
    await page.waitForSelector('.chat-row:first-child .chat-title svg');
    await shot(page, 'chats-list');
    const nuts = (await rows(page)).indexOf('Nuts');
    const [download] = await Promise.all([page.waitForEvent('download'), choose(page, nuts, 'Export as Markdown')]);
    equal(download.suggestedFilename(), 'Nuts.md', 'file');
    if (!readFileSync(await download.path(), 'utf8').includes('Walnut')) throw new Error('the message is not in the Markdown');
    const [json] = await Promise.all([page.waitForEvent('download'), choose(page, nuts, 'Export as JSON')]);
    const whole = JSON.parse(readFileSync(await json.path(), 'utf8'));
    equal([json.suggestedFilename(), whole.title, whole.messages[0].parts[0].text], ['Nuts.json', 'Nuts', 'What is 7 * 6? Walnut'], 'the JSON');
    await page.fill('#question', 'Not sent');
    await choose(page, nuts, 'Delete');
    await page.click('.chat-delete .danger');
    await page.waitForSelector('.chat-title:text-is("Nuts")', { state: 'detached' });
    await page.waitForSelector('#welcome');
    equal(await page.evaluate(() => Object.entries(localStorage).filter(([, text]) => text.includes('Not sent'))), [], 'draft');
  });

  await check('b17 of a sent message of thousands of lines the beginning is shown, all of it on a click, and where a search has found something in the rest', async () => {
    const lines = Array.from({ length: 5000 }, (_, at) => (at === 3000 ? 'hazelnut' : `line ${at}`));
    await page.keyboard.press('Control+Shift+O');
    await page.waitForSelector('#welcome');
    // A browser takes a minute to type as much.
    await page.evaluate((text) => {
      const field = document.getElementById('question');
      field.value = text;
      field.dispatchEvent(new Event('input', { bubbles: true }));
    }, lines.join('\n'));
    await page.press('#question', 'Enter');
    const shown = async () => (await page.locator('.asked').innerText()).split('\n').length;
    await page.waitForSelector('.unfold');
    await idle(page);
    equal([await shown(), await page.locator('.unfold').getAttribute('aria-expanded')], [40, 'false'], 'lines');
    await shot(page, 'chats-long-message');
    await page.click('.unfold:text-is("Show all of it")');
    equal([await shown(), await page.locator('.unfold').getAttribute('aria-expanded')], [5000, 'true'], 'lines of all');
    await page.click('.unfold:text-is("Show less")');
    equal(await shown(), 40, 'lines again');
    await page.click('#new-chat');
    await page.fill('#chats-search', 'hazelnut');
    await page.waitForFunction(() => document.querySelectorAll('.chat-row').length === 1);
    await page.locator('.chat-row a').click();
    await page.waitForSelector('[data-sought] .asked:has-text("hazelnut")');
    await page.fill('#chats-search', '');
    await choose(page, 0, 'Delete');
    await page.click('.chat-delete .danger');
    await page.waitForSelector('#welcome');
  });

  await check('b17 settings hold for a chat', async () => {
    await page.click('.chat-row a');
    await page.waitForSelector('.answer');
    await page.click('#settings-open');
    await page.fill('#setting-system', 'Be brief.');
    await page.fill('#settings input[max="2"]', '0.4');
    const last = page.waitForResponse((response) => response.request().postDataJSON()?.settings?.tools?.length === 0);
    await page.locator('.tool-choice button:text-is("None")').click();
    await last;
    await page.keyboard.press('Escape');
    await page.reload();
    await page.waitForSelector('.answer');
    await page.click('#settings-open');
    equal(await page.inputValue('#setting-system'), 'Be brief.', 'system prompt');
    equal(await page.inputValue('#settings input[max="2"]'), '0.4', 'temperature');
    equal(await page.locator('.choices input:checked').count(), 0, 'tools');
    await page.keyboard.press('Escape');
  });

  await check('b17 the model uses the tools that are chosen for its chat, and no others', async () => {
    const made = async () => {
      await ask(page, QUESTION);
      await idle(page);
      return page.locator('.answer:last-child .call[data-name="calculate"][data-state="ok"]').count();
    };
    const choose = async (name, chosen) => {
      await page.click('#settings-open');
      const changed = page.waitForResponse((response) => response.request().method() === 'POST' && /\/api\/chats\/[^/]+$/.test(response.url()));
      await page.locator('.choices label', { has: page.locator(`code:text-is("${name}")`) }).locator('input').setChecked(chosen);
      await changed;
      await page.keyboard.press('Escape');
    };
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    equal(await made(), 1, 'calls with all tools');
    await choose('calculate', false);
    equal(await made(), 0, 'calls without that tool');
    await choose('calculate', true);
    equal(await made(), 1, 'calls with it again');
  });

  await check('b17 a picture goes into a message, and stays with it', async () => {
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    await page.evaluate(async () => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 60, height: 40 });
      canvas.getContext('2d').fillRect(0, 0, 60, 40);
      const blob = await new Promise((resolve) => { canvas.toBlob(resolve, 'image/png'); });
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([blob], 'black.png', { type: 'image/png' }));
      clipboardData.items.add(new File(['a = 1\n'], 'a.py', { type: '' }));
      clipboardData.items.add(new File(['%PDF'], 'b.pdf', { type: 'application/pdf' }));
      document.getElementById('question').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    });
    await page.waitForSelector('.attached li:has-text("black.png")');
    await page.waitForSelector('.attached .part-error:has-text("b.pdf: The file cannot be read")');
    equal(await page.locator('.share').count(), 0, 'offers to share what was meant for the chat');
    await shot(page, 'chats-attached');
    await ask(page, 'What is 3 * 4, and what is in this picture?');
    await idle(page);
    await page.waitForFunction(() => document.querySelector('.asked-files img')?.naturalWidth === 60);
    if (!(await page.innerText('.asked')).includes('a = 1')) throw new Error('the text is not in the message');
    await page.reload();
    await page.waitForFunction(() => document.querySelector('.asked-files img')?.naturalWidth === 60);
  });

  await check('b17 a document of a chat is found in it and in no other, and goes when it is removed', async () => {
    const about = 'Retrieve documents about what lapsang is smoked over';
    const found = async () => {
      await ask(page, about);
      await page.waitForSelector('.answer:last-child .call[data-name="retrieve_documents"][data-state="ok"]');
      await idle(page);
      await page.locator('.answer:last-child .call summary').click();
      return (await page.innerText('.answer:last-child .call-body')).includes('this chat/lapsang.md');
    };
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    await page.fill('#question', 'Not yet sent');
    // Too long for a message.
    await page.evaluate(() => {
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([`# Lapsang\n\nLapsang is smoked over pine.\n\n${'Tea is a drink.\n\n'.repeat(15_000)}`], 'lapsang.md', { type: '' }));
      document.getElementById('question').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    });
    await page.waitForSelector('#chat-documents li[data-ready="true"]:has-text("lapsang.md")');
    equal(await page.inputValue('#question'), 'Not yet sent', 'draft');
    equal(await found(), true, 'found in its chat');
    await shot(page, 'chats-document');
    const address = page.url();
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    await page.waitForSelector('#chat-documents', { state: 'detached' });
    equal(await found(), false, 'found in another chat');
    equal(await page.evaluate(() => fetch('api/documents').then((answer) => answer.text()).then((text) => text.includes('lapsang'))), false, 'listed among the shared ones');
    await page.goto('about:blank');
    await page.goto(address);
    await page.click('#chat-documents button[aria-label="Remove lapsang.md"]');
    await page.waitForSelector('#chat-documents', { state: 'detached' });
    equal(await found(), false, 'found when it is removed');
  });

  await check('b17 office documents, long JSON and source, mail and texts of any name become documents of the chat, and what cannot be read is said', async () => {
    await page.click('#new-chat');
    await page.waitForSelector('#welcome');
    const drop = (...files) => page.evaluate(([all]) => {
      const dataTransfer = new DataTransfer();
      for (const [name, type, base64] of all) dataTransfer.items.add(new File([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], name, { type }));
      document.getElementById('drop-chat').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
    }, [files]);
    const file = (name, type, text) => [name, type, Buffer.from(text).toString('base64')];
    await drop(file('film.mp4', 'video/mp4', '\0\0\0 ftypisom'));
    await page.waitForSelector('.attached .part-error:has-text("film.mp4: Files of this kind cannot be read"):has-text(".docx")');
    equal([await page.locator('.share').count(), new URL(page.url()).hash], [0, ''], 'offers to share, and the chat that is begun');
    await drop(
      ['tea.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', readFileSync(process.env.TEA_DOCX).toString('base64')],
      file('prices.json', 'application/json', JSON.stringify({ drinks: Array(20_000).fill('oolong 4') })),
      file('long.py', '', 'a = 1\n'.repeat(40_000)),
      file('letter.eml', 'message/rfc822', 'From: ada@example.org\nSubject: Tea\n\nBring rooibos.\n'),
      file('Recipe', '', 'Sencha is steeped for a minute.\n'),
    );
    for (const name of ['tea.docx', 'prices.json', 'long.py', 'letter.eml', 'Recipe']) await page.waitForSelector(`#chat-documents li[data-ready="true"]:has-text("${name}")`);
    equal(await page.locator('.attached .part-error').count(), 0, 'errors');
    await ask(page, 'Retrieve documents about how green tea is steeped');
    await page.waitForSelector('.answer:last-child .call[data-name="retrieve_documents"][data-state="ok"]');
    await idle(page);
    await page.locator('.answer:last-child .call summary').click();
    const found = await page.innerText('.answer:last-child .call-body');
    if (!found.includes('this chat/tea.docx')) throw new Error(`not found: ${found}`);
  });

  await check('b17 what is sent before the list of chats has come stays in view', async () => {
    const { page: early, context: other } = await open(browser, { viewport: { width: 1280, height: 860 } });
    let release = () => {};
    const sent = new Promise((done) => { release = done; });
    await early.goto('about:blank');
    // The list comes when something was sent, and before that has its chat.
    await early.route(/\/api\/chats(\?|$)/, async (route) => {
      await sent;
      if (route.request().method() === 'POST') await early.waitForTimeout(1000);
      await route.continue();
    });
    await early.goto(URL_UNDER_TEST);
    await early.fill('#question', 'What is 2 * 21?');
    await early.keyboard.press('Enter');
    await early.waitForSelector('.asked:text-is("What is 2 * 21?")');
    release();
    await early.waitForSelector('.chat-row.shown');
    await idle(early);
    equal([await early.locator('.asked').count(), await early.locator('.answer').count()], [1, 1], 'questions and answers');
    await other.close();
  });

  await check('chats: no console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}

/** The chats on a phone lie over the chat. */
export async function chatsOnPhone(browser) {
  if (!(await areKept())) return;
  const { page, complaints, context } = await open(browser, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true });
  await check('b17 phone: the drawer with the chats opens, fits, and opens a chat', async () => {
    await ask(page, QUESTION);
    await idle(page);
    await page.click('#new-chat');
    await page.click('#chats-toggle');
    await page.waitForSelector('.chat-row');
    await atRest(page);
    await shot(page, 'chats-phone');
    await page.locator('.chat-row a').first().click();
    await page.waitForSelector('#chats', { state: 'hidden' });
    await page.waitForSelector('.answer');
    equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, 'width');
  });
  await check('phone: chats without console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}
