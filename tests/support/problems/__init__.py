"""Problems for templates and libraries."""
