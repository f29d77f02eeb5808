//! The documents of the page, and the files that each of them needs.

use std::{borrow::Cow, sync::LazyLock};

use rust_embed::Embed;
use sha2::{Digest, Sha256};

#[derive(Embed)]
#[folder = "src/server/page"]
pub(super) struct Files;

/// Changes with any file of the page.
pub(super) static VERSION: LazyLock<String> = LazyLock::new(|| {
    if cfg!(debug_assertions) {
        return "debug".to_owned();
    }
    let mut all = Sha256::new();
    for path in Files::iter() {
        all.update(path.as_bytes());
        all.update(Files::get(&path).map(|file| file.metadata.sha256_hash()).unwrap_or_default());
    }
    let hash = all.finalize();
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

/// A document and what it loads at once; what lies elsewhere is loaded when it is needed.
pub(super) struct Document {
    pub(super) file: &'static str,
    /// From where it is to `/`, which may be a path behind a proxy.
    pub(super) root: &'static str,
    /// Where the names of its modules begin.
    pub(super) modules: &'static [&'static str],
    /// Its style sheets, each of them a folder: a browser that paints nothing before it has them all asks for few.
    pub(super) styles: &'static [&'static str],
}

pub(super) const CHAT: Document = Document {
    file: "index.html",
    root: "",
    modules: &["main.js", "state/", "components/", "text/", "vendor/"],
    styles: &["styles.css"],
};

/// Anybody may open it: it has nothing but what the routes of admins answer.
pub(super) const CONSOLE: Document = Document {
    file: "admin.html",
    root: "",
    modules: &["console/main.js", "console/sections/", "console/parts/", "console/state.js", "vendor/"],
    styles: &["styles.css", "console/styles.css"],
};

/// Where users let the server into an account elsewhere.
pub(super) const CONNECT: Document = Document {
    file: "connect.html",
    root: "../",
    modules: &["connect.js", "state/language.js", "state/storage.js", "languages/en.js"],
    styles: &["styles.css", "connect.css"],
};

/// What came of signing in, or of connecting an account.
pub(super) const MESSAGE: Document = Document {
    file: "message.html",
    root: "",
    modules: &["message.js", "state/language.js", "state/storage.js", "languages/en.js"],
    styles: &["styles.css", "connect.css"],
};

impl Document {
    /// The page, with the addresses of all files that it needs at once, so that the browser does not learn of them one after the other.
    pub(super) fn page(&self) -> String {
        let files: Vec<Cow<'static, str>> = Files::iter().collect();
        let version = &*VERSION;
        let root = self.root;
        let link =
            |rel: &str, path: &str| format!("  <link rel=\"{rel}\" href=\"{root}page/{version}/{path}\">\n");
        let modules = |begin: &&str| -> String {
            let mut found: Vec<&str> = files
                .iter()
                .map(|path| path.as_ref())
                .filter(|path| path.starts_with(*begin) && path.ends_with(".js"))
                .collect();
            found.sort_unstable();
            found.into_iter().map(|path| link("modulepreload", path)).collect()
        };
        let modules: String = self.modules.iter().map(modules).collect();
        let styles: String = self.styles.iter().map(|path| link("stylesheet", path)).collect();
        let mut languages: Vec<&str> =
            files.iter().filter_map(|path| path.strip_prefix("languages/")?.strip_suffix(".js")).collect();
        languages.sort_unstable();
        let page = Files::get(self.file).map(|file| file.data).unwrap_or_default();
        String::from_utf8_lossy(&page)
            .replace("<!-- styles -->\n", &styles)
            .replace("<!-- modules -->\n", &modules)
            .replace("{root}", root)
            .replace("{version}", version)
            .replace("{languages}", &languages.join(" "))
    }
}
