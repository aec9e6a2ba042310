def translate_text(text: str, language: str) -> str:
    """Translate a text with a model."""
    prompt = f"Translate into {language}:\n\n{text}"
    return tools.inference(provider="local", model="small", prompt=prompt)["text"]
