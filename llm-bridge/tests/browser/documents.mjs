// Documents that tools search: dropped, chosen, listed, removed.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { answerText, ask, check, equal, forgetComplaints, idle, noOverflow, open, shot } from './support.mjs';

/** Fires an event of a drag over the page; `files` are name and text. */
function drag(page, type, files) {
  return page.evaluate(([name, dragged]) => {
    const dataTransfer = new DataTransfer();
    for (const [file, text] of dragged) dataTransfer.items.add(new File([text], file, { lastModified: Date.UTC(2026, 0, 31) }));
    document.getElementById('drop-documents').dispatchEvent(new DragEvent(name, { dataTransfer, bubbles: true, cancelable: true }));
  }, [type, files]);
}

/** Drops files, and says that they are to be shared. */
async function shared(page, files) {
  await drag(page, 'drop', files);
  await page.click('#documents-share');
}

/** Drops a real file or folder, as a person does. */
async function dropFromDisk(page, path) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [path], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop']) await session.send('Input.dispatchDragEvent', { type, x: 200, y: 780, data });
  await session.detach();
}

/** Waits for the summary of what was added. */
const added = (page, summary) => page.waitForSelector(`#documents-status:text-is("${summary}")`);

/** Lets the answers of a slow server come late. */
const later = (page, address) => page.route(address, async (route) => {
  await new Promise((then) => { setTimeout(then, 500); });
  await route.fallback().catch(() => {});
});

const transfers = (page) => page.locator('.transfer').evaluateAll((rows) => rows.map((row) => [row.querySelector('.transfer-name').textContent, row.querySelector('.transfer-state').textContent]));
const listed = (page, folder) => page.locator(`#documents-list section[aria-label="${folder}"] .document-name`).allInnerTexts();

const NOTES = [['oolong.md', '# Oolong\n\nOolong tea is steeped at 88 degrees.\n'], ['prices.csv', 'drink,price\noolong,4\nsencha,3\n']];

/** Closes the dialog, which forgets what was added. */
async function closed(page) {
  await page.click('#documents-close');
  await page.waitForSelector('#documents', { state: 'detached' });
}

export async function documents(browser) {
  const { page, complaints, context } = await open(browser, { viewport: { width: 1280, height: 860 } });
  // From now on the test is asked for files, and not a person.
  page.on('filechooser', () => {});
  const folder = mkdtempSync(join(tmpdir(), 'toolrack-page-'));

  await check('files over the page are shown where to go, and text is not', async () => {
    await drag(page, 'dragover', NOTES);
    await page.waitForSelector('#drop:popover-open');
    await shot(page, 'documents-drag');
    await drag(page, 'dragleave', NOTES);
    await page.waitForSelector('#drop', { state: 'hidden' });
    await drag(page, 'dragover', []);
    equal(await page.locator('#drop:popover-open').count(), 0, 'overlays for what is no file');
  });

  await check('dropped files are added, and one that cannot be read is refused in words', async () => {
    await drag(page, 'dragover', NOTES);
    await later(page, '**/api/documents');
    await shared(page, [...NOTES, ['cat.png', 'no text']]);
    await added(page, '2 added, 1 not added.');
    await page.unroute('**/api/documents');
    equal(await page.locator('#drop:popover-open').count(), 0, 'overlays left');
    const [oolong, prices, cat] = await transfers(page);
    equal([oolong, prices], [['oolong.md', 'Added, 1 passage'], ['prices.csv', 'Added, 1 passage']], 'added');
    if (!cat[1].includes('cannot be read') || !cat[1].includes('.pdf')) throw new Error(`no reason in: ${cat}`);
    equal(await listed(page, 'uploads/local'), ['oolong.md', 'prices.csv'], 'documents');
    await shot(page, 'documents-added');
  });

  await check('what is there as it is, and a file that the server cannot read, are reported', async () => {
    await shared(page, [NOTES[0], ['broken.pdf', 'no pdf'], ['prices.csv', 'drink,price\noolong,5\n']]);
    await added(page, '1 updated, 1 unchanged, 1 not added.');
    equal((await transfers(page))[1], ['broken.pdf', 'The file cannot be read: it is no PDF'], 'broken file');
  });

  await check('a folder that is dropped is added with what is in it', async () => {
    for (const name of ['notes', 'notes/deep', 'notes/.git']) mkdirSync(join(folder, name));
    for (const [name, text] of [['notes/sencha.md', '# Sencha\n\nSencha is green.\n'], ['notes/deep/matcha.txt', 'Matcha is ground.'], ['notes/leaf.jpg', ''], ['notes/.git/config.md', '# Hidden']]) writeFileSync(join(folder, name), text);
    await dropFromDisk(page, join(folder, 'notes'));
    await page.click('#documents-share');
    await added(page, '2 added, 2 hidden files or of other kinds left out.');
    equal(await listed(page, 'uploads/local/notes'), ['sencha.md'], 'documents in it');
    equal(await listed(page, 'uploads/local/notes/deep'), ['matcha.txt'], 'documents below it');
    await shot(page, 'documents-list');
  });

  await check('the tools are shown as they are by now, without a reload', async () => {
    await page.keyboard.press('Escape');
    await page.waitForSelector('#documents', { state: 'hidden' });
    await page.click('#tools-toggle');
    await page.waitForSelector('.tool:not(.off) .tool-name:text-is("retrieve_documents")');
    await page.click('#tools-close');
  });

  await check('a question finds a passage of a file that was dropped', async () => {
    await ask(page, 'Retrieve documents about how hot oolong is steeped');
    await page.waitForSelector('.answer:last-child .call[data-name="retrieve_documents"][data-state="ok"]');
    await idle(page);
    const text = await answerText(page);
    for (const words of ['88 degrees', 'uploads/local/oolong.md']) {
      if (!text.includes(words)) throw new Error(`no ${words} in: ${text}`);
    }
    await shot(page, 'documents-answer');
  });

  await check('with the keyboard alone documents are reached, added and removed', async () => {
    await page.focus('#tools-toggle');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#tools-list .tool');
    await tabTo(page, '#documents-open');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#documents[open] .document');
    await tabTo(page, '#documents-files');
    const picker = page.waitForEvent('filechooser');
    await page.keyboard.press('Enter');
    await (await picker).setFiles({ name: 'assam.md', mimeType: 'text/markdown', buffer: Buffer.from('# Assam\n\nStrong.\n') });
    await added(page, '1 added.');
    await tabTo(page, '[aria-label="Remove assam.md"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.removal:has-text("Remove assam.md?")');
    await shot(page, 'documents-remove');
    equal(await page.evaluate(() => document.activeElement.textContent), 'Keep', 'focus');
    await page.keyboard.press('Enter');
    equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Remove assam.md', 'focus after that');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Shift+Tab');
    await later(page, '**/api/tools');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.document-name:text-is("assam.md")', { state: 'detached' });
    equal(await page.evaluate(() => document.activeElement.id), 'documents-list', 'focus at the end');
    await page.waitForSelector('#documents-status:text-is("Removed assam.md.")');
    await page.unroute('**/api/tools');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#documents', { state: 'hidden' });
    equal(await page.evaluate(() => document.activeElement.id), 'documents-open', 'focus on the page');
  });

  await check('documents are added to a folder that is named, which is offered from then on', async () => {
    await page.click('#documents-open');
    await page.fill('#documents-into', ' tea/black/ ');
    const picker = page.waitForEvent('filechooser');
    await page.click('#documents-files');
    await (await picker).setFiles({ name: 'assam.md', mimeType: 'text/markdown', buffer: Buffer.from('# Assam\n\nStrong.\n') });
    await added(page, '1 added.');
    equal(await listed(page, 'uploads/local/tea/black'), ['assam.md'], 'documents in it');
    equal(await page.locator('#documents-folders option').evaluateAll((all) => all.map(({ value }) => value)), ['notes', 'notes/deep', 'tea/black'], 'folders');
    await page.click('[aria-label="Remove assam.md"]');
    await page.click('.removal .danger');
    await page.waitForSelector('.document-name:text-is("assam.md")', { state: 'detached' });
    await closed(page);
  });

  await check('a folder is chosen, and removed with all that is in it', async () => {
    await page.click('#documents-open');
    const picker = page.waitForEvent('filechooser');
    await page.click('#documents-folder');
    await (await picker).setFiles(join(folder, 'notes'));
    await added(page, '2 unchanged, 2 hidden files or of other kinds left out.');
    await page.click('[aria-label="Remove all in uploads/local"]');
    await page.click('.removal .danger');
    await page.waitForSelector('#documents-list section[aria-label^="uploads/local"]', { state: 'detached' });
    await closed(page);
  });

  await check('what is sent can be stopped', async () => {
    await page.route('**/api/documents?name=**', () => {});
    await shared(page, NOTES);
    await page.waitForSelector('.transfer:first-child .spinner');
    await shot(page, 'documents-sending');
    await page.click('#documents-stop');
    await added(page, '2 not added.');
    equal((await transfers(page)).map(([, state]) => state), ['Stopped', 'Stopped'], 'states');
    await page.unroute('**/api/documents?name=**');
    await closed(page);
  });

  await check('users who may not add or see documents get the reason', async () => {
    await page.route('**/api/documents', (route) => route.fulfill({ json: { documents: [], total: 0, may_add: false, extensions: ['md'], max_bytes: 10 } }));
    await drag(page, 'drop', NOTES);
    await page.waitForSelector('#documents-status:text-is("You may not add documents here.")');
    await page.waitForSelector('#documents-add', { state: 'hidden' });
    await closed(page);
    await page.unroute('**/api/documents');
    await page.route('**/api/documents', (route) => route.fulfill({ status: 403, json: { error: { message: 'documents are for the level user' } } }));
    await drag(page, 'drop', NOTES);
    await page.waitForSelector('#documents-list [role=alert]:text-is("documents are for the level user")');
    equal(await page.locator('.transfer').count(), 0, 'files sent');
    await closed(page);
    await page.unroute('**/api/documents');
    // The dialog asks what there is, and who drops something whether that may be added.
    await forgetComplaints(complaints, '403', 2);
  });

  await check('a file that is too large is not sent', async () => {
    await page.route('**/api/documents', (route) => route.fulfill({ json: { documents: [], total: 0, may_add: true, extensions: ['md'], max_bytes: 2 ** 20 } }));
    await shared(page, [['large.md', 'x'.repeat(2 ** 20 + 1)]]);
    await added(page, '1 not added.');
    equal((await transfers(page))[0], ['large.md', 'It is larger than 1 MiB; split it'], 'reported');
    await page.unroute('**/api/documents');
    await closed(page);
  });

  // The browser reports the 422 of the broken file.
  const unexpected = complaints.filter((complaint) => !complaint.includes('422'));
  await check('documents: no other console error, CSP violation or foreign request', () => equal(unexpected, [], 'complaints'));
  rmSync(folder, { recursive: true });
  await context.close();
}

/** Goes from one element to the next as a person without a mouse does. */
async function tabTo(page, selector) {
  for (let steps = 0; steps < 60; steps += 1) {
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${selector} is not reached by the keyboard`);
}

/** The dialog on a phone, and in both schemes. */
export async function documentsOnPhone(browser) {
  const { page, complaints, context } = await open(browser,
    { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: 'dark' });
  await check('phone: documents with long names do not scroll sideways', async () => {
    await page.click('#tools-toggle');
    await shot(page, 'phone-documents-open');
    await page.click('#documents-open');
    await shared(page, [...NOTES, [`${'long'.repeat(30)}.md`, '# A title\n\nText.'], ['cat.png', '']]);
    await added(page, '3 added, 1 not added.');
    await shot(page, 'phone-documents');
    await noOverflow(page);
    const [wide, dialog] = await page.evaluate(() => {
      const body = document.querySelector('#documents .dialog-body');
      return [body.scrollWidth - body.clientWidth, document.getElementById('documents').getBoundingClientRect().right];
    });
    equal([wide, dialog <= 360], [0, true], 'pixels too wide, and whether the dialog fits');
    await page.click('[aria-label="Remove oolong.md"]');
    await shot(page, 'phone-documents-remove');
    await drag(page, 'dragover', NOTES);
    await shot(page, 'phone-documents-drag');
    await drag(page, 'dragleave', NOTES);
    await page.click('[aria-label="Remove all in uploads/local"]');
    await page.click('.folder-head .danger');
    await page.waitForSelector('#documents-list section[aria-label^="uploads/local"]', { state: 'detached' });
  });
  await check('phone: documents without console error, CSP violation or foreign request', () => equal(complaints, [], 'complaints'));
  await context.close();
}
