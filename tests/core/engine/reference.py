"""Print what ``llama_cpp.Llama`` makes of a prompt, greedily, as JSON; a process of its own.

    python reference.py MODEL PROMPT TOKENS repack|plain

``Llama`` always repacks weights where the processor gains by it, which changes the rounding; ``plain`` turns
that off through the defaults that it starts from.
"""

import json
import sys

import llama_cpp
from llama_cpp import Llama


def without_repacking() -> None:
    """Make ``Llama`` start from parameters with ``use_extra_bufts`` off; it has no argument for that."""
    given = llama_cpp.llama_cpp.llama_model_default_params

    def plain() -> llama_cpp.llama_model_params:
        parameters = given()
        parameters.use_extra_bufts = False
        return parameters

    llama_cpp.llama_cpp.llama_model_default_params = plain


def main(path: str, prompt: str, count: int, weights: str) -> None:
    """Continue ``prompt`` by ``count`` greedy tokens with the settings that the tests give to the engine."""
    if weights == "plain":
        without_repacking()
    model = Llama(
        path,
        n_ctx=2048,
        n_batch=512,
        n_ubatch=512,
        n_threads=1,
        n_threads_batch=1,
        flash_attn=True,
        swa_full=False,
        use_mmap=True,
        verbose=False,
    )
    tokens = model.tokenize(prompt.encode(), add_bos=True, special=True)
    made = []
    for token in model.generate(tokens, temp=0.0, repeat_penalty=1.0, top_k=0):
        made.append(int(token))
        if len(made) == count:
            break
    print(json.dumps({"prompt": tokens, "made": made}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
