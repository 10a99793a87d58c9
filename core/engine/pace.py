"""How many tokens a step may hold, so that running streams flow."""


class Pace:
    """Keeps a mixed step short enough that running streams flow, whatever the machine and the model."""

    TARGET_S = 0.25
    LEAST_TOKENS = 16

    def __init__(self) -> None:
        self._token_s = 0.0

    def note(self, tokens: int, seconds: float) -> None:
        """Learn from a step; short ones say little about a prefill."""
        if tokens >= self.LEAST_TOKENS:
            spent = seconds / tokens
            self._token_s = spent if not self._token_s else 0.7 * self._token_s + 0.3 * spent

    def cap(self, most: int, streams: int) -> int:
        """Give the tokens that a step may hold: about ``TARGET_S`` of work, at most ``most``."""
        reachable = int(self.TARGET_S / self._token_s) if self._token_s else 0
        return max(min(most, reachable), self.LEAST_TOKENS, streams + 1)
