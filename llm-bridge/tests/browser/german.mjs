// What the server says in English is in the language of the browser, where the page knows it by its type.

import { openKept } from './kept.mjs';
import { ANSWERS } from './kept_data.mjs';
import { URL_UNDER_TEST, check, equal, shot } from './support.mjs';

const GERMAN = { locale: 'de-AT', viewport: { width: 1280, height: 860 } };
const refused = (status, type, message) => (route) => route.fulfill({ status, json: { error: { message, type } } });

export async function german(browser) {
  await check('b17 errors of the server are in the language of the browser, and what they name is in its own words', async () => {
    for (const [error, shown] of [
      [refused(503, 'store_unavailable', "the server's store does not answer; try again"), 'Der Speicher des Servers antwortet nicht. Versuchen Sie es noch einmal.'],
      [refused(403, 'permission_denied', 'listing needs the level admin'), 'Das dürfen Sie hier nicht: listing needs the level admin'],
      [refused(400, 'constructor', 'of another server'), 'of another server'],
    ]) {
      const { page, context } = await openKept(browser, '', GERMAN, undefined, { ...ANSWERS, '/api/tools': error });
      await page.click('#tools-toggle');
      await page.waitForSelector('#tools-list .empty[role="alert"]');
      equal(await page.locator('#tools-list .empty').innerText(), shown, 'error');
      await context.close();
    }
  });

  await check('b17 the error of an answer, and where a source stands, are in the language of the browser', async () => {
    const chat = ANSWERS['/api/chats/chat_1'];
    const [question, answer] = chat.messages;
    const call = { ...answer.parts.find(({ type }) => type === 'call'), result: { passages: [{ source: 'notes/tea.md', section: 'Tee', place: 'lines 3-9', text: 'Grüner Tee.' }] } };
    const failed = { ...answer, parts: [call], status: 'failed', error: { type: 'upstream_error', message: 'connection refused' } };
    const { page, context } = await openKept(browser, '#chat_1', GERMAN, undefined, { ...ANSWERS, '/api/chats/chat_1': { ...chat, messages: [question, failed] } });
    await page.waitForSelector('.answer .error');
    equal(await page.locator('.answer .error p').innerText(), 'Fehler beim Modellserver: connection refused', 'error');
    await page.click('.sources summary');
    equal(await page.locator('.source small').innerText(), 'Tee · Zeilen 3–9', 'place');
    await page.click('#settings-open');
    equal(await page.locator('#settings .keys kbd').last().innerText(), 'Strg+Umschalt+O', 'keys');
    await shot(page, 'german-settings');
    await context.close();
  });

  await check('b17 what came of connecting an account is in the language of the browser', async () => {
    const [version] = /(?<=page\/)[^/"]+/.exec(await (await fetch(URL_UNDER_TEST)).text());
    const said = (code, about) => `<!doctype html><html lang="en" data-languages="de en"><head><meta charset="utf-8">
      <link rel="stylesheet" href="../page/${version}/styles.css"><link rel="stylesheet" href="../page/${version}/connect.css">
      <script type="module" src="../page/${version}/message.js"></script></head>
      <body><main class="connect" lang="en" data-code="${code}" data-about="${about}"><h1>Connected</h1><p>It can be used now.</p><p><a href="/">Start again</a></p></main></body></html>`;
    const context = await browser.newContext({ ...GERMAN, serviceWorkers: 'block' });
    const page = await context.newPage();
    for (const [code, title, text, lang] of [
      ['connected', 'Verbunden', 'tracker kann jetzt verwendet werden. Gehen Sie dorthin zurück, woher Sie kamen.', 'de'],
      ['of_a_later_server', 'Connected', 'It can be used now.', 'en'],
    ]) {
      await page.route('**/connections/callback', (route) => route.fulfill({ contentType: 'text/html', body: said(code, 'tracker') }));
      await page.goto(`${URL_UNDER_TEST}connections/callback`);
      await page.waitForSelector('a:text-is("Von vorn beginnen")');
      equal([await page.innerText('h1'), await page.innerText('p'), await page.locator('main').getAttribute('lang'), await page.title()], [title, text, lang, title], code);
      await page.unroute('**/connections/callback');
    }
    await shot(page, 'german-message');
    await context.close();
  });
}
