// Loads the modules of a page once it has been painted: until then a slow connection is for the styles alone.

const modules = /** @type {HTMLTemplateElement} */ (document.querySelector('#modules'));

function load() {
  document.head.append(modules.content);
  import(new URL(modules.dataset.main ?? '', document.baseURI).href);
}

// A page that nobody sees is not painted.
if (document.hidden) load();
else requestAnimationFrame(() => setTimeout(load));
