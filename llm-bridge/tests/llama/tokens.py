"""The llama.cpp server of tiny_llama.py, with a model that has more tokens.

    python3 tokens.py TINY_LLAMA TOKENS [FLAGS]     TOKENS is a list in JSON
"""

import importlib.util
import json
import sys

script, tokens = sys.argv[1], json.loads(sys.argv[2])
spec = importlib.util.spec_from_file_location("tiny_llama", script)
tiny_llama = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tiny_llama)
vocabulary = tiny_llama.vocabulary


def with_tokens():
    from gguf import TokenType

    known = vocabulary()
    texts = {text for text, _ in known}
    # As special tokens that are shown in answers.
    return known + [(token, TokenType.USER_DEFINED) for token in tokens if token not in texts]


tiny_llama.vocabulary = with_tokens
sys.argv = [script, *sys.argv[3:]]
tiny_llama.main()
