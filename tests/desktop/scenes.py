"""What the pictures show, in both languages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scene:
    """The words of one conversation."""

    system_prompt: str
    question: str
    answer: str
    next_question: str
    writing: str


TABLE = """
| {context} | {each} | KV f16 | KV q8_0 |
|--:|--:|--:|--:|
| 8,192 | 128 KiB | 1.00 GiB | 0.53 GiB |
| 32,768 | 128 KiB | 4.00 GiB | 2.13 GiB |
| 131,072 | 128 KiB | 16.00 GiB | 8.50 GiB |
"""

CODE = """
```python
# layers × kv heads × head size × (K and V) × 2 bytes
per_token = 32 * 8 * 128 * 2 * 2   # 131,072 B = 128 KiB
for ctx in (8_192, 32_768, 131_072):
    print(ctx, per_token * ctx / 2**30, "GiB")
```
"""

SCENES = {
    "en": Scene(
        system_prompt=(
            "Answer briefly and exactly. Give units with every number. Say so when you are not sure."
        ),
        question="How big is this model’s KV cache at 8K, 32K and 128K?",
        answer="It grows in a straight line: one K and one V row a token, in each of 32 layers.\n"
        + CODE
        + TABLE.format(context="Context", each="Per token"),
        next_question="So will 32K fit on this laptop?",
        writing=(
            "Only just. Your budget is 9.6 GiB; the weights take 4.58, compute and runtime 0.28, so 4.74 GiB "
            "is left and an f16 cache needs 4.00. With `q8_0` it drops to 2.13 GiB, which leaves"
        ),
    ),
    "ko": Scene(
        system_prompt="간결하고 정확하게 답하세요. 수치는 단위를 함께 쓰고, 모르면 모른다고 말하세요.",
        question="이 모델의 KV 캐시는 8K, 32K, 128K에서 얼마나 큰가요?",
        answer="**KV 캐시**는 토큰마다 128 KiB를 쓰므로 컨텍스트에 정비례해 늘어납니다.\n"
        + CODE
        + TABLE.format(context="컨텍스트", each="토큰당"),
        next_question="그럼 q8_0으로 바꾸면 품질이 많이 떨어지나요?",
        writing=(
            "대부분의 대화에서는 차이를 느끼기 어렵습니다. K와 V를 8비트로 줄여도 값이 32개씩 묶여 따로 "
            "눈금을 갖기 때문에 오차가 작습니다. 다만 긴 문서에서 숫자를"
        ),
    ),
}

CHATS = {
    "en": [
        ("KV cache at long context", 0.0),
        ("Rename photos by EXIF date", 0.02),
        ("SQL window functions", 0.03),
        ("Chapter 2 outline", 50.0),
        ("Polite reply to landlord", 75.0),
        ("What is the page cache?", 99.0),
        ("Regex for ISO dates", 400.0),
    ],
    "ko": [
        ("KV 캐시와 메모리 예산", 0.0),
        ("주간 보고서 초안 다듬기", 0.02),
        ("SQL 창 함수 질문", 0.03),
        ("경주 2박 3일 일정", 50.0),
        ("정규식으로 날짜 뽑기", 75.0),
        ("영어 메일 공손하게 고치기", 99.0),
        ("리눅스 페이지 캐시란", 400.0),
    ],
}
