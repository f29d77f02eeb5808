// One chat on a desktop and on a phone: a turn that runs is answered on the other device, and both have the same.

import { ERASE, answerText, areKept, ask, check, equal, idle, open, shot } from './support.mjs';

const DESKTOP = { viewport: { width: 1280, height: 860 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

export async function devices(browser) {
  if (!(await areKept())) return;
  const desktop = await open(browser, DESKTOP);
  const phone = await open(browser, PHONE);
  const chosen = (title) => phone.page.locator('.chat-row', { hasText: title }).first();
  const list = async () => {
    await phone.page.tap('#chats-toggle');
    await phone.page.waitForSelector('.chat-row');
  };

  await check('b17 a turn whose tab is closed goes on, and is answered on another device', async () => {
    await ask(desktop.page, ERASE);
    await desktop.page.waitForSelector('.answer .call-ask');
    await desktop.context.close();
    await phone.page.reload();
    await list();
    await chosen('Erase the note').locator('.spinner').waitFor();
    await chosen('Erase the note').locator('a').tap();
    await phone.page.waitForSelector('.answer .call[data-state="running"] .allow');
    await shot(phone.page, 'devices-phone');
    await phone.page.tap('.answer .call-ask .allow');
    await phone.page.waitForSelector('.answer .call[data-name="erase_note"][data-state="ok"]');
    await idle(phone.page);
  });

  await check('b17 a chat is the same on a phone and on a desktop: its messages, its name and its place', async () => {
    await list();
    await phone.page.locator('.chat-row.shown .chat-more').tap();
    await phone.page.tap('.menu button:has-text("Rename")');
    await phone.page.fill('.chat-row input', 'On the phone');
    await phone.page.keyboard.press('Enter');
    await chosen('On the phone').waitFor();
    const { page, context } = await open(browser, DESKTOP);
    const rows = (one) => one.locator('.chat-row .chat-title').allInnerTexts();
    equal((await rows(page)).slice(0, 3), (await rows(phone.page)).slice(0, 3), 'chats');
    await page.click('.chat-row a:has-text("On the phone")');
    await page.waitForSelector('.answer .call[data-name="erase_note"][data-state="ok"]');
    equal([await page.locator('.asked').allInnerTexts(), await answerText(page)], [await phone.page.locator('.asked').allInnerTexts(), await answerText(phone.page)], 'messages');
    if (!(await answerText(page)).includes('The note is gone.')) throw new Error('the answer is not there');
    await context.close();
  });

  await check('devices: no console error, CSP violation or foreign request', () => equal([...desktop.complaints, ...phone.complaints], [], 'complaints'));
  await phone.context.close();
}
