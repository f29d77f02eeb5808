//! The source of a template, as the engine takes it.

/// How a block of what the model says in training begins and ends; and what stands for it, which has a scope of its own likewise.
const TAGS: [(&str, &str); 2] = [("generation", "with"), ("endgeneration", "endwith")];

/// Makes all ends of lines `\n`, as Jinja2 does, and takes the blocks out of which only the training of models has something.
pub(crate) fn prepared(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut prepared = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some((before, after)) = rest.split_once("{%") {
        prepared.push_str(before);
        prepared.push_str("{%");
        rest = after;
        let Some((tag, behind)) = after.split_once("%}") else { continue };
        let word = |char| char == '-' || char == '+';
        let name = tag.trim_matches(word).trim();
        if let Some((_, other)) = TAGS.iter().find(|(tag, _)| *tag == name) {
            prepared.push_str(&tag.replace(name, other));
            prepared.push_str("%}");
            rest = behind;
        }
    }
    prepared.push_str(rest);
    prepared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_training_become_scopes() {
        for (source, expected) in [
            ("a{%- generation -%}b{% endgeneration %}c", "a{%- with -%}b{% endwith %}c"),
            ("{%+ generation%}x", "{%+ with%}x"),
            (
                "{% set generation = 1 %}\r\n{{ generation }}\r",
                "{% set generation = 1 %}\n{{ generation }}\n",
            ),
            ("{% generation", "{% generation"),
        ] {
            assert_eq!(prepared(source), expected);
        }
    }
}
