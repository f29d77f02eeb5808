// Files and folders that are dragged onto the page.

/** Shows `overlay` while some are dragged; gives `take` what is dropped, as a promise of a list of `{name, file}`. */
export function onDrop(overlay, take) {
  const hasFiles = (event) => event.dataTransfer.types.includes('Files');
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    // Else the browser would leave the page and show the file.
    event.preventDefault();
    event.dataTransfer.dropEffect = 'copy';
    overlay.showPopover();
  });
  addEventListener('dragleave', (event) => {
    // From one element to the next it is still on the page.
    if (event.relatedTarget === null) overlay.hidePopover();
  });
  addEventListener('drop', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    overlay.hidePopover();
    take(dropped(event.dataTransfer));
  });
}

/** What was chosen in a file picker. */
export function chosen(input) {
  const files = [...input.files].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
  // So that the same can be chosen once more.
  input.value = '';
  return files;
}

async function dropped(transfer) {
  // All at once: the transfer is empty after the event.
  const items = [...transfer.items].filter((item) => item.kind === 'file');
  const entries = items.map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const found = [];
  for (const entry of entries) {
    if (entry instanceof File) found.push({ name: entry.name, file: entry });
    else await walk(entry, '', found);
  }
  return found;
}

async function walk(entry, folder, found) {
  const name = folder + entry.name;
  if (entry.isFile) {
    // One that cannot be opened has no file.
    const file = await new Promise((resolve) => { entry.file(resolve, () => resolve(null)); });
    found.push({ name, file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // In parts, the last of which is empty.
    const part = await new Promise((resolve) => { reader.readEntries(resolve, () => resolve([])); });
    if (part.length === 0) return;
    for (const inner of part) await walk(inner, `${name}/`, found);
  }
}
