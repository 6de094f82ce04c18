"""The routes: our API, LibreTranslate's API, health, the pages and the OpenAPI document, and the studio's data."""
