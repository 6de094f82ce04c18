"""Language codes (BCP 47), as models state them and as LibreTranslate's clients request them."""

from __future__ import annotations

from collections.abc import Iterable

from regarde.serving.models.catalog import ModelInfo

UNSTATED = "und"  # BCP 47: not determined
AUTO = "auto"
NAMES = {
    "ar": "Arabic", "az": "Azerbaijani", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish",
    "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "ko": "Korean",
    "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam", "ms": "Malay",
    "mt": "Maltese", "mul": "Multiple languages", "nb": "Norwegian Bokmål", "nl": "Dutch", "nn": "Norwegian Nynorsk",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil",
    "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", UNSTATED: "Not stated",
    "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


def source(model: ModelInfo) -> str:
    return model.source_language or UNSTATED


def target(model: ModelInfo) -> str:
    return model.target_language or UNSTATED


def name(code: str) -> str:
    return NAMES.get(code) or NAMES.get(_primary(code)) or code


def fitting(models: Iterable[ModelInfo], wanted_source: str, wanted_target: str) -> list[ModelInfo]:
    """The models between two languages, exact matches first: a request for pt-BR may get pt."""
    matching = [model for model in models if _same_language(wanted_target, target(model))]
    if wanted_source != AUTO:
        matching = [model for model in matching if _same_language(wanted_source, source(model))]
    exact = (wanted_source.lower(), wanted_target.lower())
    return sorted(matching, key=lambda model: (source(model).lower(), target(model).lower()) != exact)


def _same_language(one: str, other: str) -> bool:
    return _primary(one) == _primary(other)


def _primary(code: str) -> str:
    return code.replace("_", "-").partition("-")[0].lower()
