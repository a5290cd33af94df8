"""A speech engine of another package, for tests: it hears "hola" in all speech, and needs no model."""

from voxframe_engine.speech.engines import DEFAULT_OPTIONS, EngineOptions, RecognizedWord


class Parrot:
    name = "parrot"
    model = "parrot_1"
    languages = frozenset({"es", "en_us"})

    def __init__(self, options: EngineOptions = DEFAULT_OPTIONS) -> None:
        pass

    def transcribe(self, samples: object) -> list[RecognizedWord]:
        return [RecognizedWord("hola", 0, 100, 1.0)]
